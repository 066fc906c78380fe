"""The server under test: an HTTP server on a port of its own in each pytest process."""
import http.server
import threading

import pytest

pytest_plugins = ["slowlane_pytest", "pytester"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self._respond(b"x" * int(self.path[1:] or 2))

    def do_POST(self):
        self._respond(b"%d" % len(self.rfile.read(int(self.headers["Content-Length"]))))

    def _respond(self, body):
        head = "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.wfile.write(head.encode() + body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        # Clients that abort connections are part of the tests.
        pass


@pytest.fixture(scope="session")
def slowlane_upstream():
    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "127.0.0.1:%d" % server.server_port
        server.shutdown()
