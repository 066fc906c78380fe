"""A shop over HTTPS, with HTTP/1.1 and HTTP/2, and its own certificate authority."""
import http.server
import os
import socket
import ssl
import subprocess
import threading

import h2.config
import h2.connection
import h2.events


def make_certificates(folder, host):
    """Makes ca.pem, and server.pem with the certificate and the key of a host."""
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]

    def run(*arguments):
        subprocess.run([*new, *arguments], cwd=folder, check=True, capture_output=True)

    run("-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=shop authority")
    run("-keyout", "host.key", "-out", "host.pem", "-subj", "/CN=" + host, "-CA", "ca.pem", "-CAkey", "ca.key",
        "-addext", "subjectAltName=DNS:" + host, "-addext", "basicConstraints=critical,CA:FALSE")
    with open(os.path.join(folder, "server.pem"), "w", encoding="ascii") as file:
        for name in ("host.pem", "host.key"):
            with open(os.path.join(folder, name), encoding="ascii") as part:
                file.write(part.read())


class Shop(http.server.ThreadingHTTPServer):
    """Stores each order that is sent to it: `orders` has their versions of HTTP and their texts."""

    daemon_threads = True

    def __init__(self, certificate, port=0):
        self.orders = []
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate)
        self._tls.set_alpn_protocols(["h2", "http/1.1"])
        super().__init__(("127.0.0.1", port), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)
        self._thread.start()

    def wait(self):
        """Serves until the process ends."""
        self._thread.join()

    def finish_request(self, request, client_address):
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._tls.wrap_socket(request, server_side=True) as connection:
            if connection.selected_alpn_protocol() == "h2":
                self._serve_streams(connection)
            else:
                _Handler(connection, client_address, self)

    def _serve_streams(self, connection):
        state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        state.initiate_connection()
        connection.sendall(state.data_to_send())
        bodies = {}
        while data := connection.recv(65536):
            for event in state.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    bodies[event.stream_id] = bodies.get(event.stream_id, b"") + event.data
                elif isinstance(event, h2.events.StreamEnded):
                    self.orders.append(("h2", bodies.pop(event.stream_id).decode()))
                    state.send_headers(event.stream_id, [(":status", "201")])
                    state.send_data(event.stream_id, b"%d orders" % len(self.orders), end_stream=True)
            connection.sendall(state.data_to_send())

    def handle_error(self, *_):
        # Clients that abort connections are part of the tests.
        pass


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.server.orders.append(("http/1.1", self.rfile.read(int(self.headers["Content-Length"])).decode()))
        body = b"%d orders" % len(self.server.orders)
        self.wfile.write(b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    def log_message(self, *_):
        pass
