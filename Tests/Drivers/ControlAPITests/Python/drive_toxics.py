"""Applies every toxic through the client library from PyPI, on live connections, and checks each on the wire.

usage: drive_toxics.py API-PORT [SLACK [TIMES]]

No effect may come early. SLACK is by how many seconds it may come late, 0.15 on a quiet machine.
TIMES multiplies the times of the toxics (default: 1); with 10, errors of a few milliseconds show.
Prints 'ok NAME' after each check; the first failure ends the script with status 1.
"""

import http.client
import json
import os
import socket
import sys
import threading
import time

from toxiproxy import Toxiproxy
from toxiproxy.api import APIConsumer

TIMEOUT = 60
SLACK = float(sys.argv[2]) if len(sys.argv) > 2 else 0.15
TIMES = float(sys.argv[3]) if len(sys.argv) > 3 else 1


def ms(count):
    """A time of a toxic in whole milliseconds."""
    return round(count * TIMES)


def seconds(count_ms):
    return ms(count_ms) / 1000


class Echo:
    """An echo server that records how its connections ended."""

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
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT)
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
            self.socket.settimeout(TIMEOUT)

    def end(self):
        """The remaining data, and whether the connection ended by FIN or RST."""
        data = b""
        try:
            while True:
                piece = self.socket.recv(65536)
                if not piece:
                    return data, "fin"
                data += piece
        except ConnectionResetError:
            return data, "rst"


def wait_for(condition, description):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "not within %d s: %s" % (TIMEOUT, description)
        time.sleep(0.01)


def about(low, value):
    assert low <= value <= low + SLACK, "%.3f is not within %.3f and %.3f" % (value, low, low + SLACK)


class Checks:
    def __init__(self, port):
        self.port = port
        self.server = Toxiproxy()
        self.server.update_api_consumer("127.0.0.1", port)
        self.echo = Echo()
        self.proxy = self.server.create(upstream=self.echo.address, name="echo")

    def wait_until_read(self, count):
        """Waits until the proxy has read `count` bytes from its clients: a close over unread bytes is a RST."""

        def has_read():
            server = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
            server.request("GET", "/slowlane/v1/proxies/echo/connections")
            return json.load(server.getresponse())[-1]["received_bytes"]["up"] >= count

        wait_for(has_read, "%d bytes read by the proxy" % count)

    def latency(self):
        client = Client(self.proxy)
        about(0, client.round_trip())
        self.proxy.add_toxic(type="latency", attributes={"latency": ms(50), "jitter": 0})
        about(seconds(50), client.round_trip())
        about(seconds(50), Client(self.proxy).round_trip())
        self.proxy.add_toxic(type="latency", name="again", stream="upstream", attributes={"latency": ms(25)})
        about(seconds(75), client.round_trip())

    def two_latencies(self):
        """Two of 50 ms delay every chunk of a pipelined stream by 100 ms."""
        for name in ("one", "two"):
            self.proxy.add_toxic(type="latency", name=name, attributes={"latency": ms(50)})
        client = Client(self.proxy)
        client.round_trip()
        sent = []
        late = []

        def send():
            for number in range(10):
                sent.append(time.monotonic())
                client.send(bytes([number]) * 100)
                time.sleep(0.005)

        threading.Thread(target=send).start()
        for number in range(10):
            assert client.receive(100) == bytes([number]) * 100
            late.append(time.monotonic() - sent[number])
        about(seconds(100), min(late))
        about(seconds(100), max(late))

    def bandwidth(self):
        """100 kB/s for each connection: 20 000 bytes take 0.2 s, as 1 kB = 1000 B. With 1024 B they would take 0.195 s."""
        self.proxy.add_toxic(type="bandwidth", attributes={"rate": 100})
        clients = [Client(self.proxy), Client(self.proxy)]
        data = b"b" * round(20000 * TIMES)
        start = time.monotonic()
        for client in clients:
            client.send(data)
        for client in clients:
            assert client.receive(len(data)) == data
        about(len(data) / 100000 * 0.995, time.monotonic() - start)

    def cut_and_heal(self):
        """Rate 0 both ways stops all data; its removal loses none."""
        client = Client(self.proxy)
        client.round_trip()
        for stream in ("upstream", "downstream"):
            self.proxy.add_toxic(type="bandwidth", name="cut_" + stream, stream=stream, attributes={"rate": 0})
        client.send(b"c" * 5000)
        assert client.is_silent(seconds(100))
        for stream in ("upstream", "downstream"):
            self.proxy.destroy_toxic("cut_" + stream)
        assert client.receive(5000) == b"c" * 5000

    def slow_close(self):
        self.proxy.add_toxic(type="slow_close", stream="upstream", attributes={"delay": ms(100)})
        client = Client(self.proxy)
        about(0, client.round_trip())
        self.echo.ends.clear()
        start = time.monotonic()
        client.socket.shutdown(socket.SHUT_WR)
        assert client.end() == (b"", "fin")
        about(seconds(100), time.monotonic() - start)
        assert self.echo.ends == ["fin"]

    def timeout(self):
        client = Client(self.proxy)
        client.round_trip()
        self.proxy.add_toxic(type="timeout", attributes={"timeout": ms(300)})
        start = time.monotonic()
        client.send(b"discarded")
        end = client.end()
        assert end == (b"", "fin"), end
        about(seconds(300), time.monotonic() - start)

    def timeout_removed(self):
        """Timeout 0 discards data for ever; its removal, also by a reset, closes the connections that lost data."""
        for remove in (lambda: self.proxy.destroy_toxic("hold"), self.server.reset):
            client = Client(self.proxy)
            client.round_trip()
            self.proxy.add_toxic(type="timeout", name="hold", attributes={"timeout": 0})
            client.send(b"discarded")
            self.wait_until_read(10)
            assert client.is_silent(seconds(100))
            remove()
            end = client.end()
            assert end == (b"", "fin"), end
            about(0, Client(self.proxy).round_trip())

    def reset_peer(self):
        """A RST at both ends, also of connections older than the toxic."""
        old = Client(self.proxy)
        old.round_trip()
        self.echo.ends.clear()
        self.proxy.add_toxic(type="reset_peer", attributes={"timeout": ms(100)})
        new = Client(self.proxy)
        assert old.is_silent(seconds(200))
        for client in (old, new):
            start = time.monotonic()
            client.send(b"r")
            assert client.end() == (b"", "rst")
            about(seconds(100), time.monotonic() - start)
        wait_for(lambda: self.echo.ends == ["rst", "rst"], "the server's resets, not %s" % self.echo.ends)

    def slicer(self):
        """Pieces of about 100 bytes, sent separately with a pause after each."""
        gap = seconds(30)
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
        # A late reader receives several pieces at once.
        assert len(pieces) >= 5, pieces
        assert sorted(pieces)[len(pieces) // 2] <= 240, pieces
        about(gap * (len(pieces) - 2), span)
        # The original crashes without attributes.
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
        """Loss delays data by retransmissions; no byte is missing."""
        self.proxy.add_toxic(type="packet_loss", attributes={"loss_rate": 1.0, "correlation": 0})
        client = Client(self.proxy)
        client.send(b"p" * 3000)
        assert client.is_silent(seconds(250))
        self.proxy.destroy_toxic("packet_loss_downstream")
        start = time.monotonic()
        assert client.receive(3000) == b"p" * 3000
        # The next retransmission is backed off to at most the time of the loss and a second.
        assert time.monotonic() - start < 5 + 2 * seconds(250) + SLACK

    def noop(self):
        self.proxy.add_toxic(type="noop")
        about(0, Client(self.proxy).round_trip())
        toxic = self.proxy.get_toxic("noop_downstream")
        assert (toxic.type, toxic.stream, toxic.attributes) == ("noop", "downstream", {})

    def half_close(self):
        """A client that shuts down its sending side receives the whole response, with and without toxics."""
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
                raise AssertionError("the disabled proxy listens")
            except ConnectionRefusedError:
                pass
        about(0, Client(self.proxy).round_trip())

    def names(self):
        """The responses as the library parses them."""
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
