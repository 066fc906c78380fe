"""Real clients through `slowlane with --intercept` for scripts/soak http2: what a reset of the third POST does to them."""
import collections
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import http2_programs
from http2_origin import RESOURCES, Origin, digest, resource

RULE = "POST * nth 3 before-response reset"
PACKAGES = {"httpx": "httpx", "requests": "requests", "aiohttp": "aiohttp", "grpcio": "grpc"}
# The first line of a command that has the version of a client.
VERSIONS = {
    "curl": ["curl", "--version"], "nghttp": ["nghttp", "--version"], "h2load": ["h2load", "--version"], "wget": ["wget", "--version"],
    "git": ["git", "--version"], "node": ["node", "--version"], "java": ["java", "--version"], "ruby": ["ruby", "--version"],
    "go": ["go", "version"], "chromium": [os.environ.get("SLOWLANE_CHROMIUM") or "chromium", "--version"],
}
Client = collections.namedtuple("Client", "name protocol words modes reads")
BOTH, CONNECT = ("connect", "env"), ("connect",)


def version(tool):
    """Returns a version, or None if the tool is missing."""
    if tool in PACKAGES:
        return getattr(__import__(PACKAGES[tool]), "__version__")
    try:
        output = subprocess.run(VERSIONS[tool], capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    found = re.search(r"\d+\.\d+[.\w]*", output)
    return found.group(0) if found else None


def clients(folder, site):
    """Writes and builds the programs. Returns the clients whose tools are installed; prints the others."""
    def write(name, text):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(text.lstrip("\n"))
        return path

    def python(name, text):
        return [sys.executable, write(name + ".py", text)]

    def build_java():
        subprocess.run(["javac", "-d", folder, write("Client.java", http2_programs.JAVA)], check=True)
        return ["java", "-cp", folder, "Client"]

    def build_go():
        path = os.path.join(folder, "go-client")
        variables = {**os.environ, "GOCACHE": os.path.join(folder, "go-cache"), "GO111MODULE": "off"}
        subprocess.run(["go", "build", "-o", path, write("client.go", http2_programs.GO)], check=True, env=variables)
        return [path]

    data, page = "digest " + digest(site.data), digest(b"".join(resource(number) for number in range(RESOURCES)))
    calls = python("grpc-client", http2_programs.GRPC)
    made = [
        ("curl", "`curl --http2`", "h2", lambda: ["sh", "-c", http2_programs.CURL, "--http2"], BOTH, data),
        ("curl", "`curl --http1.1`", "http/1.1", lambda: ["sh", "-c", http2_programs.CURL, "--http1.1"], BOTH, data),
        ("nghttp", "nghttp", "h2", lambda: python("nghttp", http2_programs.NGHTTP), CONNECT, data),
        ("h2load", "h2load", "h2", lambda: python("h2load", http2_programs.H2LOAD), CONNECT, "bytes %d" % (20 * len(site.data))),
        ("httpx", "httpx", "h2", lambda: python("httpx-client", http2_programs.HTTPX), BOTH, data),
        ("requests", "requests", "http/1.1", lambda: python("requests-client", http2_programs.REQUESTS), BOTH, data),
        ("aiohttp", "aiohttp, `trust_env=True`", "http/1.1", lambda: python("aiohttp-client", http2_programs.AIOHTTP), BOTH, data),
        ("grpcio", "grpcio, unary", "h2", lambda: calls, BOTH, data),
        ("grpcio", "grpcio, stream of the client", "h2", lambda: calls, BOTH, data),
        ("grpcio", "grpcio, stream of the server", "h2", lambda: calls, BOTH, data),
        ("node", "Node.js, `http2`", "h2", lambda: ["node", write("http2.js", http2_programs.NODE_HTTP2)], CONNECT, data),
        ("node", "Node.js, `fetch` (undici)", "http/1.1", lambda: ["node", write("fetch.js", http2_programs.NODE_FETCH)], CONNECT, data),
        ("java", "Java, `HttpClient`", "h2", build_java, BOTH, data),
        ("ruby", "Ruby, `Net::HTTP`", "http/1.1", lambda: ["ruby", write("client.rb", http2_programs.RUBY)], BOTH, data),
        ("go", "Go, `net/http`", "h2", build_go, BOTH, data),
        ("git", "git, `ls-remote` and `clone`", "h2", lambda: ["sh", "-c", http2_programs.GIT, "git"], BOTH, data),
        ("chromium", "Chromium, `fetch`", "h2", lambda: python("chromium", http2_programs.CHROMIUM), BOTH,
         "digest %s, resources %d %d" % (page, RESOURCES, RESOURCES)),
        ("wget", "wget, `--ca-certificate=$SSL_CERT_FILE`", "http/1.1", lambda: ["sh", "-c", http2_programs.WGET, "wget"], BOTH, data),
    ]
    result = []
    for tool, name, protocol, words, modes, reads in made:
        found = version(tool)
        if not found:
            print("intercept: %s is not installed" % tool)
            continue
        label = re.sub(r"^(`?\w+(?:\.js)?)(.*)$", lambda part: "%s %s" % (name, found) if tool == "curl" else
                       "%s %s%s" % (part.group(1), found, part.group(2)), name)
        result.append(Client(label, protocol, words(), modes, reads))
    return result


KINDS = {"unary": "unary", "stream of the client": "upload", "stream of the server": "download"}


def outcome(a, origin, client, mode, body, name):
    """Runs a client once. Returns what has happened, in words that begin with "right" if all of it is as it must be."""
    kinds = [kind for text, kind in KINDS.items() if client.name.endswith(text)]
    report = os.path.join(os.path.dirname(body), name)
    words = [a.program, "with", "--mode", mode, "--intercept", "origin.test,grpc.test", "--upstream-ca", origin.authority, "--map",
             "origin.test=127.0.0.1:%d" % origin.port, "--map", "grpc.test=127.0.0.1:%d" % origin.grpc_port, "--fault", RULE, "--report",
             report, "--", *client.words, "https://origin.test/run/" + name, body, *kinds]
    try:
        run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "no end after 120 s"
    lines = run.stdout.splitlines()
    results = {int(line[0]): line.split()[1] for line in lines if re.match(r"[1-4] ", line)}
    reads = ", ".join(sorted(line for line in lines if re.match("digest|bytes|resources", line)))
    posts, exchanges, fired = sorted(origin.site.posts.pop(name, [])), {}, []
    with open(os.path.join(report, "events.jsonl")) as file:
        for event in map(json.loads, file):
            if event["event"] == "exchange" and event["data"]["method"] == "POST":
                exchanges[event["data"]["id"]] = event["data"]
            elif event["event"] == "fault" and event["data"]["change"] == "fired":
                fired.append(event["data"]["exchange"])
    if a.verbose:
        with open(os.path.join(report, "events.jsonl")) as file:
            print(shlex.join(words), run.stdout, run.stderr, posts, file.read(), sep="\n")
    shutil.rmtree(report)
    errors = []
    if reads != client.reads:
        errors.append("it has read '%s'" % reads)
    if not all(post.is_right for post in posts):
        errors.append("the server has got other bytes")
    if {post.version for post in posts} != {client.protocol}:
        errors.append("the protocols are %s" % sorted({post.version for post in posts}))
    # The requests in the order in which the proxy has read them, which is that of the server.
    order = [exchange["target"] for _, exchange in sorted(exchanges.items())]
    if not kinds and order != [post.path for post in posts]:
        errors.append("the proxy has read %s, and the server has executed %s" % (order, [post.path for post in posts]))
    if len(posts) < 4 or [sorted(exchanges).index(number) for number in fired] != [2]:
        return "; ".join([*errors, "%d POST, faults in the exchanges %s of %s" % (len(posts), fired, sorted(exchanges))])
    count, number = (6, 3) if "git" in client.name else (4, int(posts[2].path.rsplit("/", 1)[1]))
    failed = [other for other in range(1, 5) if results.get(other) != "200"]
    repeated = [path for path, times in collections.Counter(post.path for post in posts).items() if times == 2]
    if failed == [number] and len(posts) == count:
        text = "right, %d: the third POST fails" % count
    elif failed == [] and len(posts) == 5 and repeated == [posts[2].path]:
        text = "right, 5: the client repeats the third POST"
    else:
        errors.append("%s fail, %d POST" % (failed, len(posts)))
    return "; ".join(errors) or text


def run(a):
    failures = []
    with tempfile.TemporaryDirectory(prefix="slowlane-soak-") as folder:
        origin = Origin(folder)
        body = os.path.join(folder, "body")
        with open(body, "wb") as file:
            file.write(origin.site.body)
        print("| client | protocol | mode | runs that are right | POST requests that the server has executed |\n|---|---|---|---|---|")
        number = 0
        for client in clients(folder, origin.site):
            if a.client and not re.search(a.client, client.name):
                continue
            for mode in client.modes:
                counts = collections.Counter()
                for _ in range(a.repeats):
                    number += 1
                    counts[outcome(a, origin, client, mode, body, "r%d" % number)] += 1
                right = {text: count for text, count in counts.items() if text.startswith("right")}
                print("| %s | %s | %s | %d of %d | %s |" % (
                    client.name, {"h2": "HTTP/2"}.get(client.protocol, "HTTP/1.1"), mode, sum(right.values()), a.repeats,
                    "; ".join("%s%s" % (text.removeprefix("right, "), " in %d" % count if len(right) > 1 else "")
                              for text, count in right.items())), flush=True)
                failures += ["%s, %s: %s in %d runs" % (client.name, mode, text, count) for text, count in counts.items() if text not in right]
        origin.stop()
    return failures
