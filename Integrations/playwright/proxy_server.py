"""`slowlane server` with a small upstream, and requests through its proxies."""
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.parse
import urllib.request

LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Upstream(http.server.ThreadingHTTPServer):
    """A server that responds to everything: with the status and the size that the query names."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), UpstreamHandler)
        self.address = "127.0.0.1:%d" % self.server_port
        self.received = []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        pass  # Connections that end in the middle are part of the tests.


class UpstreamHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def respond(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.received.append((self.command, self.path))
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        body = b"x" * int(query.get("size", 20))
        self.send_response(int(query.get("status", 200)))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = respond

    def log_message(self, *_):
        pass


class ProxyServer:
    """The program, on a free port or a given one."""

    def __init__(self, port=0, options=()):
        command = [os.environ["SLOWLANE_PROGRAM"], "server", "--host", "127.0.0.1", "--port", str(port), "--seed", "7", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, LOG_LEVEL="warning"))
        self.url = re.search(r"http://\S+?:\d+", self.process.stdout.readline().decode()).group()
        self.port = int(self.url.rpartition(":")[2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(20)
        self.process.stdout.close()

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method, data=None if body is None else json.dumps(body).encode())
        with LOCAL.open(request, timeout=20) as response:
            text = response.read()
        return json.loads(text) if text else None

    def create(self, name, upstream, **settings):
        """Creates a proxy on a free port; returns its host and port."""
        proxy = self.call("POST", "/proxies", {"name": name, "listen": "127.0.0.1:0", "upstream": upstream, **settings})
        host, _, port = proxy["listen"].rpartition(":")
        return host, int(port)


def send(address, method="GET", target="/", body=None, timeout=60):
    """Sends a request on a connection of its own; returns the status, or the name of the error."""
    connection = http.client.HTTPConnection(*address, timeout=timeout)
    try:
        connection.request(method, target, body)
        response = connection.getresponse()
        response.read()
        return response.status
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()


def send_bytes(address, data, timeout=20):
    """Sends bytes as they are; returns what comes back until the end or the first pause."""
    with socket.create_connection(address, timeout=timeout) as connection:
        connection.sendall(data)
        return connection.recv(65536)
