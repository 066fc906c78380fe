"""A server of JSON objects with an id and a revision. Usage: python3 server.py [--path /items/] [PORT]"""
import argparse, base64, json, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

parser = argparse.ArgumentParser()
parser.add_argument("--path", default="/items/")
parser.add_argument("port", nargs="?", type=int, default=8000)
arguments = parser.parse_args()
items, done, lock = {}, {}, threading.Lock()
password = "Basic " + base64.b64encode(b"ada:secret").decode()

def execute(method, id, new, base):
    old = items.get(id)
    if method == "GET" and not id: return 200, list(items.values())
    if method == "POST" and old: return 409, old
    if method != "POST" and not old: return 404, {"detail": "no such item"}
    if method == "GET": return 200, old
    if old and base != f'"{old["revision"]}"': return 409, old  # another device has changed it
    if method == "DELETE": return 200, items.pop(id)
    if new.get("name") == "Whisky": return 422, {"detail": "not sold here"}
    items[id] = new | {"id": id, "revision": old["revision"] + 1 if old else 1, "updated": time.time()}
    return 200 if old else 201, items[id]

class Items(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def respond(self):
        new = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        id, key = self.path.removeprefix(arguments.path).strip("/") or new.get("id"), self.headers.get("Idempotency-Key")
        with lock:  # a request that a client repeats has its effect once
            if self.headers.get("Authorization") != password: status, value = 401, {"detail": "wrong user or password"}
            elif not self.path.startswith(arguments.path): status, value = 404, {"detail": f"see {arguments.path}"}
            else: status, value = done.get(key) or execute(self.command, id, new, self.headers.get("If-Match"))
            if key and status < 300: done[key] = status, value
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = do_PUT = do_DELETE = respond
    def log_message(self, *words): pass

server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Items)
print(f"listening on 127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
