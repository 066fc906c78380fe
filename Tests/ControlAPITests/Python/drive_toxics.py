"""Drives every toxic through the client library from PyPI, on live connections, and checks each on the wire.

usage: drive_toxics.py API-PORT [SLACK]

Nothing may be early; by how many seconds it may be late is SLACK, 0.15 on a quiet machine. From 1 on it also waits longer
where what is checked must have happened before something else does.
Prints 'ok NAME' for each check; the first that fails ends it with status 1.
"""

import socket
import sys
import threading
import time

from toxiproxy import Toxiproxy
from toxiproxy.api import APIConsumer

PATIENCE = 60
SLACK = float(sys.argv[2]) if len(sys.argv) > 2 else 0.15
IS_SLOW = SLACK >= 1


class Echo:
    """Sends back what it gets; remembers how its connections ended."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.ends = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        end = "fin"
        try:
            while True:
                data = connection.recv(65536)
                if not data:
                    break
                connection.sendall(data)
        except ConnectionResetError:
            end = "rst"
        except OSError as error:
            end = str(error)
        self.ends.append(end)
        connection.close()


class Client:
    def __init__(self, proxy):
        host, port = proxy.listen.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                break
            data += piece
        return data

    def round_trip(self, data=b"x"):
        start = time.monotonic()
        self.send(data)
        assert self.receive(len(data)) == data
        return time.monotonic() - start

    def is_silent(self, seconds):
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) is None
        except socket.timeout:
            return True
        finally:
            self.socket.settimeout(PATIENCE)

    def end(self):
        """What was received until the end, and how that came."""
        data = b""
        try:
            while True:
                piece = self.socket.recv(65536)
                if not piece:
                    return data, "fin"
                data += piece
        except ConnectionResetError:
            return data, "rst"


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "not within %d s: %s" % (PATIENCE, what)
        time.sleep(0.01)


def about(low, value):
    assert low <= value <= low + SLACK, "%.3f is not within %.3f and %.3f" % (value, low, low + SLACK)


class Checks:
    def __init__(self, port):
        self.server = Toxiproxy()
        self.server.update_api_consumer("127.0.0.1", port)
        self.echo = Echo()
        self.proxy = self.server.create(upstream=self.echo.address, name="echo")

    def latency(self):
        client = Client(self.proxy)
        about(0, client.round_trip())
        self.proxy.add_toxic(type="latency", attributes={"latency": 200, "jitter": 0})
        about(0.2, client.round_trip())
        about(0.2, Client(self.proxy).round_trip())
        self.proxy.add_toxic(type="latency", name="again", stream="upstream", attributes={"latency": 100})
        about(0.3, client.round_trip())

    def two_latencies(self):
        """Two of 100 ms: 200 ms and more for every chunk of a pipelined stream."""
        for name in ("one", "two"):
            self.proxy.add_toxic(type="latency", name=name, attributes={"latency": 100})
        client = Client(self.proxy)
        client.round_trip()
        sent = []
        late = []

        def send():
            for number in range(10):
                sent.append(time.monotonic())
                client.send(bytes([number]) * 100)
                time.sleep(0.02)

        threading.Thread(target=send).start()
        for number in range(10):
            assert client.receive(100) == bytes([number]) * 100
            late.append(time.monotonic() - sent[number])
        about(0.2, min(late))
        about(0.2, max(late))

    def bandwidth(self):
        """100 kB/s, each connection its own: 100 000 bytes take 1 s, as 1 kB = 1000 B; with 1024 it were 0.977 s."""
        self.proxy.add_toxic(type="bandwidth", attributes={"rate": 100})
        clients = [Client(self.proxy), Client(self.proxy)]
        for client in clients:
            client.socket.settimeout(PATIENCE)
        start = time.monotonic()
        for client in clients:
            client.send(b"b" * 100000)
        for client in clients:
            assert client.receive(100000) == b"b" * 100000
        about(0.995, time.monotonic() - start)

    def cut_and_heal(self):
        """Rate 0 both ways, then removal: nothing is lost."""
        client = Client(self.proxy)
        client.round_trip()
        for stream in ("upstream", "downstream"):
            self.proxy.add_toxic(type="bandwidth", name="cut_" + stream, stream=stream, attributes={"rate": 0})
        client.send(b"c" * 5000)
        assert client.is_silent(0.3)
        for stream in ("upstream", "downstream"):
            self.proxy.destroy_toxic("cut_" + stream)
        assert client.receive(5000) == b"c" * 5000

    def slow_close(self):
        self.proxy.add_toxic(type="slow_close", stream="upstream", attributes={"delay": 300})
        client = Client(self.proxy)
        about(0, client.round_trip())
        self.echo.ends.clear()
        start = time.monotonic()
        client.socket.shutdown(socket.SHUT_WR)
        assert client.end() == (b"", "fin")
        about(0.3, time.monotonic() - start)
        assert self.echo.ends == ["fin"]

    def timeout(self):
        client = Client(self.proxy)
        client.round_trip()
        # Long enough that what is sent is read before the end: a close over unread bytes is a RST.
        self.proxy.add_toxic(type="timeout", attributes={"timeout": 2000})
        start = time.monotonic()
        client.send(b"swallowed")
        end = client.end()
        assert end == (b"", "fin"), end
        about(2, time.monotonic() - start)

    def timeout_removed(self):
        """Without a time it holds for ever; its removal closes what it held."""
        client = Client(self.proxy)
        client.round_trip()
        self.proxy.add_toxic(type="timeout", name="hold", attributes={"timeout": 0})
        client.send(b"swallowed")
        # Until it has been read: a close over unread bytes is a RST.
        assert client.is_silent(2 if IS_SLOW else 0.3)
        self.proxy.destroy_toxic("hold")
        assert client.end() == (b"", "fin")
        about(0, Client(self.proxy).round_trip())
        # The same by a reset of everything.
        self.proxy.add_toxic(type="timeout", name="hold", attributes={"timeout": 0})
        held = Client(self.proxy)
        held.send(b"swallowed")
        assert held.is_silent(2 if IS_SLOW else 0.2)
        self.server.reset()
        assert held.end() == (b"", "fin")

    def reset_peer(self):
        """A real RST at both ends, on older connections too."""
        old = Client(self.proxy)
        old.round_trip()
        self.echo.ends.clear()
        self.proxy.add_toxic(type="reset_peer", attributes={"timeout": 200})
        new = Client(self.proxy)
        assert old.is_silent(0.4)
        for client in (old, new):
            start = time.monotonic()
            client.send(b"r")
            assert client.end() == (b"", "rst")
            about(0.2, time.monotonic() - start)
        wait_for(lambda: self.echo.ends == ["rst", "rst"], "the server's resets, not %s" % self.echo.ends)

    def slicer(self):
        """Pieces of some 100 bytes, each by itself, 10 ms apart (200 ms where a reader may be late)."""
        gap = 0.2 if IS_SLOW else 0.01
        self.proxy.add_toxic(
            type="slicer", attributes={"average_size": 100, "size_variation": 20, "delay": round(gap * 1e6)}
        )
        client = Client(self.proxy)
        start = time.monotonic()
        client.send(b"s" * 1000)
        pieces = []
        while sum(pieces) < 1000:
            pieces.append(len(client.socket.recv(65536)))
        span = time.monotonic() - start
        # A reader that is late gets some of them together.
        sent = max(len(pieces), 8)
        assert len(pieces) >= (3 if IS_SLOW else 8), pieces
        assert sorted(pieces)[len(pieces) // 2] <= (360 if IS_SLOW else 120), pieces
        about(gap * (sent - 2), span)
        # Without attributes it does not end the process.
        self.proxy.add_toxic(type="slicer", name="bare")
        assert client.round_trip(b"t" * 300) > 0

    def limit_data(self):
        self.echo.ends.clear()
        self.proxy.add_toxic(type="limit_data", attributes={"bytes": 1000})
        client = Client(self.proxy)
        client.send(b"l" * 600)
        assert client.receive(600) == b"l" * 600
        client.send(b"l" * 600)
        data, _ = client.end()
        assert data == b"l" * 400, len(data)
        wait_for(lambda: len(self.echo.ends) == 1, "the server's end")

    def packet_loss(self):
        """Loss makes TCP late; no byte is missing."""
        self.proxy.add_toxic(type="packet_loss", attributes={"loss_rate": 1.0, "correlation": 0})
        client = Client(self.proxy)
        client.send(b"p" * 3000)
        assert client.is_silent(0.5)
        self.proxy.destroy_toxic("packet_loss_downstream")
        start = time.monotonic()
        assert client.receive(3000) == b"p" * 3000
        # At a retransmission, which comes some time after the loss has ended.
        assert time.monotonic() - start < 5 + SLACK

    def noop(self):
        self.proxy.add_toxic(type="noop")
        about(0, Client(self.proxy).round_trip())
        toxic = self.proxy.get_toxic("noop_downstream")
        assert (toxic.type, toxic.stream, toxic.attributes) == ("noop", "downstream", {})

    def half_close(self):
        """Who shuts down its sending side still gets the whole answer, toxics or not."""
        listener = socket.create_server(("127.0.0.1", 0))
        late = self.server.create(upstream="127.0.0.1:%d" % listener.getsockname()[1], name="late")
        for toxics in (0, 1):
            if toxics:
                late.add_toxic(type="latency", attributes={"latency": 20})
            client = Client(late)
            client.send(b"request")
            client.socket.shutdown(socket.SHUT_WR)
            server, _ = listener.accept()
            request = b""
            while True:
                piece = server.recv(100)
                if not piece:
                    break
                request += piece
            assert request == b"request"
            server.sendall(b"a" * 3000000)
            server.close()
            data, end = client.end()
            assert (len(data), end) == (3000000, "fin")
        late.destroy()

    def absurd_settings(self):
        for kind, attributes in (
            ("bandwidth", {"rate": -5}),
            ("latency", {"latency": 0, "jitter": 10 ** 12}),
            ("limit_data", {"bytes": -1}),
            ("slicer", {"average_size": 1, "size_variation": 10 ** 12}),
            ("reset_peer", {"timeout": -1}),
            ("timeout", {"timeout": -(10 ** 15)}),
        ):
            self.proxy.add_toxic(type=kind, attributes=attributes)
            client = Client(self.proxy)
            client.send(b"z" * 100)
            try:
                client.is_silent(0.05)
            except ConnectionResetError:
                pass
            self.server.reset()
        about(0, Client(self.proxy).round_trip())

    def down(self):
        client = Client(self.proxy)
        client.round_trip()
        with self.proxy.down():
            assert client.end() == (b"", "fin")
            try:
                Client(self.proxy)
                raise AssertionError("it listens")
            except ConnectionRefusedError:
                pass
        about(0, Client(self.proxy).round_trip())

    def names(self):
        """What the library reads back."""
        assert b"2.12.0" in self.server.version()
        assert set(self.server.proxies()) == {"echo"}
        assert self.server.get_proxy("echo").enabled
        populated = self.server.populate(
            [{"name": "more", "upstream": self.echo.address, "listen": "127.0.0.1:0"}]
        )
        assert [proxy.name for proxy in populated] == ["more"]
        populated[0].destroy()
        for call in (
            lambda: self.proxy.add_toxic(type="nonsense"),
            lambda: APIConsumer.get("/proxies/none"),
            lambda: APIConsumer.post("/proxies", json={"name": "echo", "upstream": "x:1"}),
        ):
            try:
                call()
                raise SystemExit("no error")
            except Exception as error:
                assert type(error).__name__ in ("InvalidToxic", "NotFound", "ProxyExists"), error


def main():
    checks = Checks(int(sys.argv[1]))
    for name in (
        "names", "latency", "two_latencies", "bandwidth", "cut_and_heal", "slow_close", "timeout", "timeout_removed",
        "reset_peer", "slicer", "limit_data", "packet_loss", "noop", "half_close", "absurd_settings", "down",
    ):  # fmt: skip
        checks.server.reset()
        getattr(checks, name)()
        print("ok", name, flush=True)


main()
