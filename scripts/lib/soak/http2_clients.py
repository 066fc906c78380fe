"""Real clients of HTTP/2 with prior knowledge for scripts/soak http2: what they do when a POST meets a fault."""
import asyncio
import concurrent.futures
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import grpc
import httpx

from http2_peers import Server

TIME_MAX = 3
# Each rule applies to the first POST; a second one follows.
CASES = [
    ("`REFUSED_STREAM`", "POST * before-request reset REFUSED_STREAM"), ("GOAWAY below the request", "POST * before-request goaway"),
    ("`goaway`", "POST * after-response goaway"), ("`rst_after_header`", "POST * after-response-head reset"),
    ("`rst_during_data`", "POST * mid-response reset"), ("`rst_after_data`", "POST * mid-response bytes 1000000000 reset"),
    ("`ping`", "POST * before-response ping"), ("`max_streams`", "POST * before-response limit-streams 1"),
    ("response lost", "POST * before-response stall"), ("status lost", "POST * mid-response bytes 1000000000 drop-trailers"),
    ("half of a header block", "POST * before-response truncate-headers"),
]
# A response with trailers, whose body is longer than a frame.
PATH = "/trailers/20000"
NODE = """
const http2 = require("http2"), [port, path, count, time] = process.argv.slice(1);
let session;
const post = () => new Promise((resolve) => {
  if (!session || session.closed || session.destroyed) {
    session = http2.connect(`http://127.0.0.1:${port}`);
    session.on("error", () => {});
  }
  const request = session.request({":method": "POST", ":path": path});
  let status = 0, size = 0;
  request.setTimeout(time * 1000, () => request.close(http2.constants.NGHTTP2_CANCEL));
  request.on("response", (fields) => { status = fields[":status"]; });
  request.on("data", (piece) => { size += piece.length; });
  request.on("error", (error) => resolve(error.code));
  request.on("close", () => resolve(request.rstCode ? `reset ${request.rstCode}` : size ? String(status) : "timeout"));
  request.end("text");
});
(async () => {
  const results = [];
  for (let index = 0; index < count; index++) results.push(await post());
  console.log(JSON.stringify(results));
  process.exit();
})();
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    raise SystemExit("nothing listens on port %d" % port)


class HTTPServer:
    """A server of Python's h2 in a thread of its own, which counts requests."""

    def __init__(self):
        self.connections, self.loop = [], asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.server = self.call(self.start())
        self.port = self.server.sockets[0].getsockname()[1]

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    async def start(self):
        return await self.loop.create_server(lambda: Server("clients", self.connections), "127.0.0.1", 0)

    @property
    def requests(self):
        return sum(len(connection.paths) for connection in self.connections)

    def stop(self):
        self.loop.call_soon_threadsafe(self.server.close)
        for connection in self.connections:
            self.loop.call_soon_threadsafe(connection.transport.abort)


class GRPCServer:
    """A server of grpcio with a method of each kind, which counts calls."""

    def __init__(self):
        self.requests = 0
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        handler = grpc.method_handlers_generic_handler("slowlane.Test", {
            "Unary": grpc.unary_unary_rpc_method_handler(lambda request, _: self.take() and b"r" * 20_000)})
        self.server.add_generic_rpc_handlers((handler,))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def take(self):
        self.requests += 1
        return True

    def stop(self):
        self.server.stop(None).wait()


def curl(port, count):
    """One process per request: curl 7.88 cannot use a connection of prior knowledge twice."""
    results = []
    for _ in range(count):
        output = subprocess.run(
            ["curl", "-s", "--http2-prior-knowledge", "--max-time", str(TIME_MAX), "-d", "text", "-o", "/dev/null", "-w",
             "%{http_code} %{exitcode}", "http://127.0.0.1:%d%s" % (port, PATH)], capture_output=True, text=True, check=False).stdout
        status, code = output.split()
        results.append(status if code == "0" else "exit %s" % code)
    return results


def with_httpx(port, count):
    results = []
    with httpx.Client(http1=False, http2=True, timeout=TIME_MAX) as client:
        for _ in range(count):
            try:
                results.append(str(client.post("http://127.0.0.1:%d%s" % (port, PATH), content=b"text").status_code))
            except httpx.HTTPError as error:
                results.append(type(error).__name__)
    return results


def nghttp(port, count):
    """All requests at once, on one connection."""
    with tempfile.NamedTemporaryFile() as body:
        body.write(b"text")
        body.flush()
        output = subprocess.run(
            ["nghttp", "-v", "--no-dep", "-n", "-t", str(TIME_MAX), "-d", body.name]
            + ["http://127.0.0.1:%d%s/%d" % (port, PATH, number) for number in range(count)],
            capture_output=True, text=True, check=False, timeout=30).stdout
    output = re.sub(r"\x1b\[[0-9;]*m", "", output)
    streams = []
    for stream in re.findall(r"send HEADERS frame <.*stream_id=(\d+)>", output):
        if stream not in streams:
            streams.append(stream)
    results = []
    for stream in streams:
        status = re.search(r"recv \(stream_id=%s\) :status: (\d+)" % stream, output)
        reset = re.search(r"recv RST_STREAM frame <.*stream_id=%s>\s*\(error_code=(\w+)" % stream, output)
        flags = re.findall(r"recv (?:HEADERS|DATA) frame <length=\d+, flags=0x(\w+), stream_id=%s>" % stream, output)
        ended = any(int(flag, 16) & 1 for flag in flags)
        results.append("reset %s" % reset.group(1) if reset else status.group(1) if status and ended else "no response")
    return results + ["not sent"] * (count - len(streams))


def node(port, count):
    output = subprocess.run(["node", "-e", NODE, str(port), PATH, str(count), str(TIME_MAX)], capture_output=True, text=True, check=False)
    return json.loads(output.stdout or "[]")


def with_grpc(port, count):
    results = []
    with grpc.insecure_channel("127.0.0.1:%d" % port, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        call = channel.unary_unary("/slowlane.Test/Unary")
        for _ in range(count):
            try:
                results.append("OK %d" % len(call(b"text", timeout=TIME_MAX)))
            except grpc.RpcError as error:
                results.append(error.code().name)
    return results


def version(words, pattern):
    output = subprocess.run(words, capture_output=True, text=True, check=False)
    return re.search(pattern, output.stdout + output.stderr).group(1)


def available():
    """Returns the clients that are installed: name, function, server."""
    clients = [("curl " + version(["curl", "--version"], r"curl (\S+)"), curl, HTTPServer), ("httpx " + httpx.__version__, with_httpx, HTTPServer)]
    if shutil.which("nghttp"):
        clients.append(("nghttp " + version(["nghttp", "--version"], r"nghttp2/(\S+)"), nghttp, HTTPServer))
    if shutil.which("node"):
        clients.append(("Node " + version(["node", "--version"], r"v(\S+)"), node, HTTPServer))
    return clients + [("grpcio " + grpc.__version__, with_grpc, GRPCServer)]


def meet(client, start_server, proxy_of, program, rule, count):
    """Sends POST requests of a client. Returns results, and the requests of the proxy and of the server."""
    server = start_server()
    proxy = proxy_of(program, server.port, [rule])
    try:
        results = client(proxy.port, count)
        time.sleep(0.1)
        matched, fired = proxy.counts()[0]
        return results, matched, fired, server.requests
    finally:
        proxy.stop()
        server.stop()


def run(a, proxy_of):
    failures, clients = [], available()
    print("| fault of the first of two POST | " + " | ".join(name for name, _, _ in clients) + " |")
    print("|---" * (len(clients) + 1) + "|")
    for name, rule in CASES:
        cells = []
        for client, function, server in clients:
            results, matched, fired, seen = meet(function, server, proxy_of, a.program, rule, 2)
            cells.append("%d/%d: %s" % (matched, seen, ", ".join(results)))
            if fired != 1:
                failures.append("%s, %s: %d faults have fired" % (client, name, fired))
        print("| %s | %s |" % (name, " | ".join(cells)), flush=True)
    # The third POST of each client, again and again.
    for client, function, server in clients:
        outcomes = {}
        for _ in range(a.repeats):
            results, matched, fired, seen = meet(function, server, proxy_of, a.program, "POST * nth 3 before-response reset", 4)
            is_exact = fired == 1 and seen == matched == 4 and len(results) == 4
            good = [index for index, result in enumerate(results) if result in ("201", "OK 20000")]
            outcome = "only the third fails" if is_exact and good == [0, 1, 3] else "%s %d/%d" % (results, matched, seen)
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        print("third POST of four, %s: %s" % (client, ", ".join("%s in %d of %d" % (text, count, a.repeats) for text, count in outcomes.items())))
        if outcomes.get("only the third fails") != a.repeats:
            failures.append("third POST, %s: %s" % (client, outcomes))
    return failures
