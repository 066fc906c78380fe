"""A server of orders for the tutorials: POST /orders stores the body as an order, GET /orders lists them, DELETE /orders removes all.

A POST with an Idempotency-Key that the server has seen before gets the first response again, and stores nothing.

usage: python3 server.py [PORT]     (default: the environment variable PORT, otherwise 8000; 0 picks a free port)
"""
import errno
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Orders(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    orders = []
    numbers = {}

    def reply(self, status, value):
        body = json.dumps(value).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(200, self.orders)

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        key = self.headers.get("Idempotency-Key")
        number = self.numbers.get(key) if key else None
        if number is None:
            self.orders.append(text)
            number = len(self.orders)
            if key:
                self.numbers[key] = number
        self.reply(201, {"order": number})

    def do_DELETE(self):
        self.orders.clear()
        self.numbers.clear()
        self.reply(200, [])

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A connection that its client has reset is no error of the server."""


if __name__ == "__main__":
    port = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PORT", 8000))
    try:
        server = Server(("127.0.0.1", port), Orders)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        sys.exit("port %d is in use; give another one as the argument" % port)
    print("listening on 127.0.0.1:%d" % server.server_port, flush=True)
    server.serve_forever()
