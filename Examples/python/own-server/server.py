"""A server of notes that knows a repeated POST in one of two ways: by its key or by the record's identifier.

status-and-body   the response to a repeated Idempotency-Key is the first one: the same status and body
record-id         the body names the record, and a record that exists is not created again
neither           every POST adds a record, and every response is the same
"""
import http.server, json, os, sys, threading

CONTRACT = sys.argv[1]
lock = threading.Lock()
records, results = [], {}


def create(key, body):
    """Returns the status and the JSON of the response to a POST."""
    if CONTRACT == "status-and-body":
        if key is None or key not in results:
            records.append(body)
            result = 201, {"receipt": len(records)}
            if key is None:
                return result
            results[key] = result
        return results[key]
    if CONTRACT == "record-id":
        status = 200
        if body["uuid"] not in [record["uuid"] for record in records]:
            records.append(body)
            status = 201
        # The number of records may have changed since: the responses of one record differ.
        return status, {"id": body["uuid"], "records": len(records)}
    records.append(body)
    return 200, {"ok": True}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def respond(self, status, value):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        with lock:
            self.respond(200, records)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with lock:
            self.respond(*create(self.headers.get("Idempotency-Key"), body))

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
