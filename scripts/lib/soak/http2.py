"""Compares connections of HTTP/2 with and without the proxy, and counts the attempts of real clients under faults of streams.

    scripts/soak http2 [--part all] [--streams 10000] [--seed 1] [--repeats 20] [--client NAME] [--verbose] [--program PATH]

Part `compare`: peers of Python's h2 exchange --streams streams of random sizes, with trailers, interim responses, padding, resets and
refusals, directly and through a proxy with a fault rule that matches none of them. Each frame that a peer has sent must arrive at the
other one as it is (type, flags, stream, length, content, fields), both runs must have the same requests, responses, resets and SETTINGS,
and the credit for a connection must equal its DATA. h2load then sends 10000 requests to nghttpd both ways.

Part `faults`: one stream in 100 meets a fault; the others complete, and the windows of no connection become smaller.

Part `clients`: curl, httpx, nghttp, Node and grpcio send a POST that meets a fault. The table says how many requests the proxy and the
server have seen, and what the client reports. Then the third POST of each client meets a fault, --repeats times.

Part `intercept`: clients of HTTPS, which scripts/soak installs if they are missing (Debian and Ubuntu), run by `slowlane with --intercept`
in both modes, --repeats times each; --client selects those whose names match a regular expression. Each one sends four POST requests, of which the
third one meets a fault, and reads data. The bytes must be right in both directions, and the fault must hit exactly the third POST that the
server has executed.

Exit status 1 if a check fails.
"""
import argparse
import asyncio
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

import http2_clients
from http2_peers import converse, frames

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
# The rule that makes the proxy track streams, and matches none.
IDLE = "POST /never-requested before-request reset"


class Proxy:
    """`slowlane proxy` with faults."""

    def __init__(self, program, upstream, faults):
        words = [program, "proxy", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:%d" % upstream]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            words + [word for fault in faults for word in ("--fault", fault)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True)
        self.port = int(re.search(r"listening on \S*?:(\d+)", self.line("listening on")).group(1))

    def line(self, mark):
        for line in self.process.stdout:
            if mark in line:
                return line
        raise SystemExit("the proxy has ended: %s" % self.log())

    def log(self):
        self.errors.seek(0)
        return self.errors.read()

    def counts(self):
        """Returns the numbers of requests that each rule has matched, and of faults that have fired."""
        self.process.stdin.write("faults\n")
        self.process.stdin.flush()
        line = self.line("ok faults")
        return [tuple(map(int, pair)) for pair in re.findall(r"matched (\d+), fired (\d+)", line)]

    def stop(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.terminate()
        self.process.wait()


def summary(sent):
    """Returns what both runs of a plan must have in common: per stream, and for the connection."""
    streams, connection = collections.defaultdict(lambda: {"fields": [], "data": 0, "reset": None}), []
    for kind, _, stream, *rest in sent:
        if kind == "headers":
            streams[stream]["fields"].append(rest[0])
        elif kind == "data":
            streams[stream]["data"] += rest[1].count(b"d")
        elif kind == "rst_stream":
            streams[stream]["reset"] = rest[0]
        elif kind == "settings":
            connection.append(rest[0])
    return dict(streams), connection


def credit(all_frames):
    return sum(frame[3] for frame in all_frames if frame[0] == "window_update" and frame[2] == 0)


def data(all_frames):
    return sum(frame[3] for frame in all_frames if frame[0] == "data")


class Comparison:
    def __init__(self, a):
        self.a, self.failures = a, []

    def check(self, is_true, text):
        if not is_true and len(self.failures) < 50:
            self.failures.append(text)

    def run(self, faults, connections, per_connection, **options):
        """Runs the conversations, through a proxy if there are faults. Returns clients, servers and the proxy's counts."""
        holder = {}

        async def port_of_client(port):
            if not faults:
                return port
            holder["proxy"] = Proxy(self.a.program, port, faults)
            return holder["proxy"].port

        try:
            clients, servers = asyncio.run(
                converse(port_of_client, None, self.a.seed, connections, per_connection, 30, **options))
            counts = holder["proxy"].counts() if holder else []
        finally:
            if holder:
                holder["proxy"].stop()
        for peer in clients + servers:
            self.check(peer.error is None, "a peer rejects what it has received: %s" % peer.error)
        return clients, servers, counts

    def compare(self):
        connections = max(1, self.a.streams // 200)
        results = [self.run(faults, connections, 200) for faults in ([], [IDLE])]
        kinds, total = collections.Counter(), 0
        for clients, servers, _ in results:
            by_bytes = {bytes(server.received): server for server in servers}
            for client in clients:
                server = by_bytes.get(bytes(client.sent))
                self.check(server is not None, "a server has not received the bytes of its client")
                if server is None:
                    continue
                self.check(server.sent == client.received, "a client has not received the bytes of its server")
                for sender, receiver in ((client, server), (server, client)):
                    sent, received = frames(bytes(sender.sent), 65_536), frames(bytes(receiver.received), 65_536)
                    self.check(sent == received, "frames differ")
                    kinds.update(frame[0] for frame in received)
                    answers = frames(bytes(receiver.sent), 65_536)
                    self.check(credit(answers) == data(sent), "%d bytes of credit for %d bytes" % (credit(answers), data(sent)))
        for direct, proxied in zip(results[0][0], results[1][0]):
            self.check(direct.results == proxied.results, "the results of a client differ")
            for side in ("sent", "received"):
                one, other = summary(frames(bytes(getattr(direct, side)), 65_536)), summary(frames(bytes(getattr(proxied, side)), 65_536))
                self.check(one == other, "requests, responses, resets or SETTINGS differ")
            total += len(proxied.results)
        print("compare: %d streams on %d connections, each way; frames received: %s" % (
            total, connections, ", ".join("%s %d" % pair for pair in sorted(kinds.items()))))
        self.load()

    def load(self):
        """Sends the same requests by h2load, with and without the proxy."""
        nghttpd = shutil.which("nghttpd") or shutil.which("nghttpd", path="/usr/sbin")
        if not shutil.which("h2load") or not nghttpd:
            return print("compare: h2load and nghttpd are not installed")
        with tempfile.TemporaryDirectory(prefix="slowlane-soak-") as folder:
            sizes = [(number * 7_919) % 50_000 for number in range(100)]
            for number, size in enumerate(sizes):
                with open(os.path.join(folder, "f%d" % number), "wb") as file:
                    file.write(b"d" * size)
            port = http2_clients.free_port()
            server = subprocess.Popen(
                [nghttpd, "--no-tls", "-d", folder, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            proxy = None
            try:
                http2_clients.wait_for(port)
                proxy = Proxy(self.a.program, port, [IDLE])
                lines = []
                for target in (port, proxy.port):
                    with open(os.path.join(folder, "list"), "w") as file:
                        file.writelines("http://127.0.0.1:%d/f%d\n" % (target, number) for number in range(100))
                    output = subprocess.run(
                        ["h2load", "-n", "10000", "-c", "4", "-m", "50", "-i", os.path.join(folder, "list")], capture_output=True,
                        text=True, check=False).stdout
                    # The header fields have the date.
                    found = re.findall(r"(\d+) succeeded.*\n.* (\d+) 2xx.*\ntraffic: .*?\((\d+)\) data", output)
                    lines.append(found or output[-500:])
                self.check(lines[0] == lines[1] and lines[0] and "10000" == lines[0][0][0], "h2load: %s" % lines)
                print("compare: h2load, each way: %s requests, %s responses of 2xx, %s bytes of DATA" % lines[1][0])
            finally:
                if proxy:
                    proxy.stop()
                server.kill()
                server.wait()

    def faults(self):
        """One stream in 100 meets a fault."""
        actions = ["before-response stall", "before-response reset", "mid-response reset REFUSED_STREAM", "before-request stall",
                   "mid-request stall", "before-request respond 503 body busy", "mid-response stall", "any delay 100ms",
                   "after-response-head throttle 100000", "mid-response bytes 1000000000 drop-trailers", "before-response ping"]
        for action in actions:
            clients, servers, counts = self.run(
                ["any /fault/* times unlimited " + action], 2, 500, faulted=100, patience=3 if "stall" in action else None)
            complete = sum(1 for client in clients for (path, _), result in client.results.items()
                           if not path.startswith("/fault") and result == "complete")
            self.check(complete == 990, "%s: %d of 990 other streams are complete" % (action, complete))
            self.check(counts and counts[0][0] == 10, "%s: %s requests matched" % (action, counts))
            for peer, others in [(client, servers) for client in clients]:
                sent, received = frames(bytes(peer.sent), 65_536), frames(bytes(peer.received), 65_536)
                self.check(credit(received) == data(sent), "%s: the client has %d bytes of credit for %d" % (action, credit(received), data(sent)))
            for server in servers:
                sent, received = frames(bytes(server.sent), 65_536), frames(bytes(server.received), 65_536)
                self.check(credit(received) == data(sent), "%s: the server has %d bytes of credit for %d" % (action, credit(received), data(sent)))
            print("faults: %-48s fired %d; %d of 990 other streams complete" % (action, counts[0][1] if counts else 0, complete))


def main():
    parser = argparse.ArgumentParser(prog="scripts/soak http2", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["all", "compare", "faults", "clients", "intercept"], default="all")
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--client", metavar="NAME")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--program")
    a = parser.parse_args()
    if not a.program:
        print("building ...", file=sys.stderr)
        words = ["swift", "build", "-c", "release", "--product", "slowlane"]
        subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        path = subprocess.run(words + ["--show-bin-path"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        a.program = os.path.join(path.strip(), "slowlane")
    comparison = Comparison(a)
    if a.part in ("all", "compare"):
        comparison.compare()
    if a.part in ("all", "faults"):
        comparison.faults()
    if a.part in ("all", "clients"):
        comparison.failures += http2_clients.run(a, Proxy)
    if a.part in ("all", "intercept"):
        # Imported here, because the other parts need none of its packages.
        import http2_intercept
        comparison.failures += http2_intercept.run(a)
    for failure in comparison.failures:
        print("failure: %s" % failure)
    print("FAIL: %d failures" % len(comparison.failures) if comparison.failures else "pass")
    sys.exit(1 if comparison.failures else 0)


main()
