"""git push and fetch over HTTP, with git's own server program."""
import random, sys

from bench import EDGE, Effects, fault, free_port, outage

DEBIAN = ["git"]
VERSION = ["git", "--version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=60_000, seconds=10),
    "lost-response": fault("POST *git-receive-pack before-response reset"),
    "lost-race": fault("POST *git-receive-pack before-response reset"),
    "mid-push": fault("POST *git-receive-pack mid-request reset"),
    "mid-fetch": fault("POST *git-upload-pack mid-response bytes 20000 reset"),
    "kill": EDGE,
}
SERVER = '''import http.server, os, subprocess, sys
class Handler(http.server.CGIHTTPRequestHandler):
    cgi_directories = ["/cgi"]
    have_fork = True
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
'''


def run(bench, condition):
    bench.write("home/.gitconfig", "[user]\nname=Ada\nemail=ada@test\n[init]\ndefaultBranch=main\n[gc]\nauto=0\n[http]\npostBuffer=16777216\n")
    (bench.folder / "repositories").mkdir(mode=0o777)
    bench.folder.chmod(0o755)
    bench.must("git", "init", "-q", "--bare", "repositories/a.git")
    bench.must("git", "-C", "repositories/a.git", "config", "http.receivepack", "true")
    bench.must("chmod", "-R", "a+rwX", "repositories")
    bench.write("cgi/git", f"#!/bin/sh\nexport GIT_PROJECT_ROOT={bench.folder}/repositories GIT_HTTP_EXPORT_ALL=1 HOME={bench.folder}/none\n"
                "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'\nexec git http-backend\n", 0o755)
    bench.write("server.py", SERVER)
    port = free_port()
    bench.start(sys.executable, "server.py", port, port=port, name="server")
    direct = f"http://127.0.0.1:{port}/cgi/git/a.git"
    bench.must("git", "init", "-q", "work")
    work = bench.folder / "work"

    def commit(folder, text, size=0):
        (bench.folder / folder / text).write_bytes(random.Random(text).randbytes(size) + text.encode())
        bench.must("git", "add", ".", cwd=bench.folder / folder)
        bench.must("git", "commit", "-q", "-m", text, cwd=bench.folder / folder)

    commit("work", "one", 100_000)
    bench.must("git", "push", "-q", direct, "main", cwd=work)
    bench.must("git", "clone", "-q", direct, "other")
    proxy = bench.proxy(port, CONDITIONS[condition])
    bench.must("git", "remote", "add", "origin", f"http://127.0.0.1:{proxy.port}/cgi/git/a.git", cwd=work)
    effects, attempts = set(), 0
    wanted = ["one", "two"]
    if condition == "mid-fetch":
        commit("other", "two", 100_000)
        bench.must("git", "push", "-q", direct, "main", cwd=bench.folder / "other")
        words = ["git", "pull", "-q", "--no-rebase", "origin", "main"]
    else:
        commit("work", "two", 60_000 if condition in ("edge", "kill") else 150_000)
        words = ["git", "push", "origin", "main"]
    limit = 3 if condition == "kill" else 90
    first = bench.do(*words, cwd=work, limit=limit)
    if first.status is None and condition != "kill":
        effects.add("stuck")
    if condition == "lost-race":
        # Somebody else pushes before the user repeats the push.
        bench.must("git", "pull", "-q", direct, "main", cwd=bench.folder / "other")
        commit("other", "three")
        bench.must("git", "push", "-q", direct, "main", cwd=bench.folder / "other")
        wanted.append("three")
    proxy.heal()
    second = first
    while not second.ok and attempts < 3:
        attempts += 1
        effects |= {"error", "retried"}
        second = bench.do(*words, cwd=work)
        if not second.ok and "fetch first" in second.text:
            bench.must("git", "pull", "-q", "--no-rebase", "origin", "main", cwd=work)
    if not second.ok:
        effects.add("stuck")
    # The server has each commit once, in order, and the objects of both ends are complete.
    log = bench.must("git", "log", "--format=%s", "--reverse", "main", cwd=bench.folder / "repositories/a.git").split()
    if [text for text in wanted if text not in log]:
        effects.add("lost")
    if len(log) != len(set(log)):
        effects.add("doubled")
    for folder in ["work", "repositories/a.git"]:
        if not bench.do("git", "fsck", "--full", "--strict", cwd=bench.folder / folder).ok:
            effects.add("mixed")
    error = [line for line in first.text.splitlines() if line.startswith(("error", "fatal"))]
    return Effects(effects, {"lost", "doubled", "mixed"}, f"{'; '.join(error)[:120] or ('killed' if condition == 'kill' else 'ok')}; commits of the server: {', '.join(log)}")
