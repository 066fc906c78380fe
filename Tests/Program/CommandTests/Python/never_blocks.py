"""Calls a server whose connections are blocked in different ways, and prints the longest time of each call.

usage: never_blocks.py API-PORT CONNECTIONS SECONDS-MAX

Many open connections, a client that does not read 64 MB, and an upstream that drops SYNs.
"""

import resource
import socket
import sys
import threading
import time

import requests

PENDING = 64 << 20


def main():
    port, connections, limit = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    session = requests.Session()
    took = {}

    def call(method, path, **arguments):
        start = time.monotonic()
        response = session.request(method, "http://127.0.0.1:%d%s" % (port, path), timeout=30, **arguments)
        name = "%s %s" % (method, path)
        took[name] = max(took.get(name, 0), time.monotonic() - start)
        assert response.status_code < 300, (name, response.text)
        return response.json() if response.content else None

    def create(name, upstream):
        call("POST", "/proxies", json={"name": name, "listen": "127.0.0.1:0", "upstream": upstream})
        listen = call("GET", "/proxies/" + name)["listen"]
        return int(listen.rsplit(":", 1)[1])

    # An upstream that accepts and keeps connections; the first one requests 64 MB.
    upstream = socket.create_server(("127.0.0.1", 0), backlog=4096)
    held = []

    def serve(connection):
        if connection.recv(1) == b"!":
            try:
                connection.sendall(b"." * PENDING)
            except OSError:
                pass

    def accept():
        while True:
            connection, _ = upstream.accept()
            held.append(connection)
            if len(held) == 1:
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    many = create("many", "127.0.0.1:%d" % upstream.getsockname()[1])
    stalled = socket.create_connection(("127.0.0.1", many))
    stalled.sendall(b"!")
    stalled.recv(1)

    # A full accept queue: the kernel drops SYNs.
    hole = socket.socket()
    hole.bind(("127.0.0.1", 0))
    hole.listen(0)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(hole.getsockname())
    time.sleep(0.2)
    silent = create("silent", "127.0.0.1:%d" % hole.getsockname()[1])
    waiting = [socket.create_connection(("127.0.0.1", silent)) for _ in range(20)]
    for client in waiting:
        client.sendall(b"hello")

    clients = []
    for _ in range(connections):
        clients.append(socket.create_connection(("127.0.0.1", many)))
    deadline = time.monotonic() + 60
    while len(held) < connections + 1:
        assert time.monotonic() < deadline, "%d of %d connections have arrived" % (len(held), connections)
        time.sleep(0.05)
    for client in clients[::10]:
        client.sendall(b"x" * 1000)
    took.clear()

    for round in range(10):
        for proxy in ("many", "silent"):
            call("GET", "/proxies")
            for kind, stream in (("latency", "downstream"), ("bandwidth", "upstream"), ("slicer", "downstream")):
                call(
                    "POST", "/proxies/%s/toxics" % proxy,
                    json={"type": kind, "stream": stream, "attributes": {"latency": 50, "rate": 1, "average_size": 100}},
                )  # fmt: skip
            call("GET", "/proxies/%s" % proxy)
            call("PATCH", "/proxies/%s/toxics/latency_downstream" % proxy, json={"attributes": {"latency": 10}})
            call("DELETE", "/proxies/%s/toxics/bandwidth_upstream" % proxy)
        call("POST", "/reset")
    # The slowest closes come last.
    call("PATCH", "/proxies/silent", json={"enabled": False})
    call("PATCH", "/proxies/silent", json={"enabled": True})
    call("DELETE", "/proxies/silent")
    open_now = call("GET", "/slowlane/v1/proxies/many")["connections_open"]
    call("PATCH", "/proxies/many", json={"enabled": False})
    call("DELETE", "/proxies/many")

    for name in sorted(took, key=took.get, reverse=True):
        print("%7.1f ms  %s" % (1000 * took[name], name))
    print("%d connections open" % open_now)
    assert open_now == connections + 1, open_now
    assert max(took.values()) < limit, "a call took %.3f s" % max(took.values())


main()
