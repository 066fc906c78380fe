"""A server of scripted events with the dashboard's files: it plays what docs/reference/events.md describes and records the calls of the page."""
import http.server
import json
import pathlib
import threading
import time
import urllib.parse

FILES = pathlib.Path(__file__).parents[2] / "Sources/C/CResources/dashboard"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
# Rate in bit/s, delay in ms, loss in per cent of both directions, and the connection policy.
PROFILES = {
    "wifi": (40_000_000, 33_000_000, 1, 1, 0, "open"), "lte": (50_000_000, 10_000_000, 50, 65, 0, "open"),
    "3g": (780_000, 330_000, 100, 100, 0, "open"), "edge": (240_000, 200_000, 400, 440, 0, "open"),
    "100-loss": (None, None, 0, 0, 100, "open"), "offline": (None, None, 0, 0, 0, "offline"),
    "portal": (None, None, 0, 0, 0, "portal"), "none": (None, None, 0, 0, 0, "open"),
}


def now():
    return time.time() * 1000


class EventsServer(http.server.ThreadingHTTPServer):
    """The server; `calls` has the method, the path and the body of each call."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port=0, dashboard="on", token=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.port = self.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self.dashboard, self.token = dashboard, token
        self.started = now()
        self.first_id = self.next_id = int(self.started)
        self.events = []
        self.changed = threading.Condition()
        self.calls = []
        self.proxies = {}
        self.recording = None
        self.ended = False
        self.exchange = 0
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, address):
        pass  # Browsers close connections as they like.

    def emit(self, kind, **data):
        with self.changed:
            self.events.append((self.next_id, kind, json.dumps(data)))
            self.next_id += 1
            self.changed.notify_all()

    # What the tests play.

    def add_proxy(self, name="notes", listen="127.0.0.1:8001", upstream="127.0.0.1:8000"):
        self.proxies[name] = {
            "proxy": name,
            "definition": {"proxy": name, "t": now(), "change": "created", "listen": listen, "upstream": upstream, "enabled": True, "seed": 42, "toxics": []},
            "link": self.link_of(name, "none", "start"), "faults": [], "summary": None, "connections": [], "exchanges": [],
        }

    def link_of(self, name, profile, by="api", timeline=None, outage=None, reset_after=None, t=None):
        down, up, delay_down, delay_up, loss, policy = PROFILES.get(profile, PROFILES["edge"])
        outage = outage or {"up": False, "down": False}
        faults = len(self.proxies.get(name, {}).get("faults", []))
        applies = profile != "none" or outage["up"] or outage["down"] or timeline is not None or faults > 0
        t = t or now()
        old = self.proxies.get(name, {}).get("link") or {}
        return {
            "proxy": name, "t": t, "by": by, "name": profile, "profile": None if timeline or profile == "none" else profile,
            "timeline": timeline, "connection_policy": policy,
            "down": {"rate_bps": down, "delay_ms": delay_down, "loss_percent": loss, "queue": "50 packets"},
            "up": {"rate_bps": up, "delay_ms": delay_up, "loss_percent": loss, "queue": "50 packets"}, "dns_delay_ms": 0,
            "outage": outage, "applies": applies, "since": (old.get("since") or t) if applies else None,
            "reset_at": t + reset_after if reset_after else None,
        }

    def set_link(self, name, profile, **settings):
        link = self.link_of(name, profile, **settings)
        self.proxies[name]["link"] = link
        self.emit("link", **link)

    def summary(self, name, **values):
        data = {
            "proxy": name, "t": now(), "rate": {"up": 0, "down": 0}, "bytes": {"up": 0, "down": 0}, "queue_bytes": {"up": 0, "down": 0},
            "queue_packets": {"up": 0, "down": 0}, "queue_delay_ms": {"up": 0, "down": 0}, "round_trip_ms": None,
            "losses": {"up": 0, "down": 0}, "retransmissions": {"up": 0, "down": 0}, "held_bytes": 0, "connections_open": 0,
            "connections_accepted": 0, "connections_waiting": 0, "dials_failed": 0, "stalled": {"up": False, "down": False},
            "timeline": None, **values,
        }
        self.proxies[name]["summary"] = data
        self.emit("summary", **data)

    def connection(self, name, number, opened, closed=None, client=None, reason=None, not_http=None, size=None, **tls):
        self.emit(
            "connection", proxy=name, t=closed or opened, number=number, state="closed" if closed else "open", opened=opened, closed=closed,
            client=client or "127.0.0.1:%d" % (50000 + number % 10000), bytes=size, reason=reason, not_http=not_http, **tls)

    def request(self, name, method="GET", target="/", start=None, send=20, wait=30, receive=40, status=200, end="completed", connection=0,
                up=0, down=120, attempt=1, fault=None, number=None, link=None, opened=None):
        """Emits the record of an exchange; `end` is None for an open one. Returns its id."""
        start = start or now() - (send or 0) - (wait or 0) - (receive or 0)
        delivered = start + send if send is not None else None
        response = delivered + wait if delivered is not None and wait is not None else None
        finish = response + receive if response is not None and receive is not None else None
        lost = end is not None and end.startswith("lost")
        if number is None:
            self.exchange += 1
            number = self.exchange
        self.emit(
            "exchange", proxy=name, t=finish or delivered or start, id=number, connection=connection, method=method, target=target,
            attempt=attempt, status=status if end == "completed" else None, request_bytes=up, response_bytes=down,
            times={
                "opened": opened, "started": start, "request_read": start + 1, "request_delivered": delivered, "response_started": response,
                "response_read": finish if not lost else (response if end == "lost-after-commit" else None),
                "response_delivered": finish if end == "completed" else None,
                "ended": (finish or start + (send or 0) + (wait or 0) + (receive or 0)) if end else None,
            },
            link=link or self.proxies[name]["link"]["name"], fault=fault, end=end)
        return number

    def hello(self):
        return {
            "schema": 1, "version": "0.1.0", "t": now(), "started": self.started, "dashboard": self.dashboard, "recording": self.recording,
            "proxies": [self.proxies[name] for name in sorted(self.proxies)],
        }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def respond(self, status, body=b"", kind="application/json", headers=()):
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def json(self, value, status=200, headers=()):
        self.respond(status, json.dumps(value).encode(), headers=headers)

    def error(self, status, text):
        self.json({"error": text, "status": status}, status)

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        if path == "/" or path.startswith("/dashboard/"):
            return self.file(path[len("/dashboard/"):] or "index.html")
        if self.server.token and self.headers["Authorization"] != "Bearer " + self.server.token:
            return self.error(401, "send 'Authorization: Bearer TOKEN'")
        if path == "/slowlane/v1/events":
            return self.stream()
        if path == "/slowlane/v1/profiles":
            entries = [{"id": name, "name": name.title(), "about": ""} for name in PROFILES if name != "none"]
            return self.json({"profiles": entries, "timelines": [{"id": "subway", "name": "Subway", "about": ""}]})
        if path == "/slowlane/v1/recording":
            return self.json({"state": "off", "started": None, "steps": 2, "yaml": "scenario: 1\nname: recorded\n"})
        if path.endswith("/timeline"):
            return self.json(self.server.proxies[self.name()]["summary"]["timeline"])
        return self.error(404, "not found")

    def file(self, name):
        path = FILES / name
        if "/" in name or not path.is_file():
            return self.error(404, "not found")
        self.respond(200, path.read_bytes(), TYPES[path.suffix], [
            ("Content-Security-Policy", POLICY), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-cache")])

    def stream(self):
        server = self.server
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        last = self.headers["Last-Event-ID"]
        with server.changed:
            at = len(server.events)
            hello = server.hello()
            if last is not None and server.first_id <= int(last) < server.next_id:
                at, hello = int(last) - server.first_id + 1, None
        try:
            if hello:
                if last is not None:
                    self.event(last, "dropped", json.dumps({"t": now(), "count": None, "reason": "restart", "proxy": None}))
                self.event(server.first_id + at - 1, "hello", json.dumps(hello))
            while not server.ended:
                with server.changed:
                    if len(server.events) == at:
                        server.changed.wait(0.5)
                    batch = server.events[at:at + 500]
                if batch:
                    self.wfile.write("".join("id: %d\nevent: %s\ndata: %s\n\n" % event for event in batch).encode())
                    at += len(batch)
                else:
                    self.wfile.write(b": keep-alive\n\n")
        except OSError:
            pass

    def event(self, number, kind, data):
        self.wfile.write(("id: %s\nevent: %s\ndata: %s\n\n" % (number, kind, data)).encode())

    def name(self):
        return urllib.parse.unquote(self.path.split("/")[4])

    def change(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        fields = json.loads(body) if body else None
        server = self.server
        path = self.path.removeprefix("/slowlane/v1")
        server.calls.append((self.command, path, fields))
        if self.headers["X-Slowlane-Dashboard"] != "1" or server.dashboard == "view":
            return self.error(403, "the dashboard is read-only")
        if path == "/reset":
            for name, proxy in server.proxies.items():
                proxy["faults"] = []
                server.set_link(name, "none", by="reset")
            return self.respond(204)
        if path == "/recording":
            server.recording = {"t": now(), "state": fields["state"], "started": now(), "steps": 2}
            server.emit("recording", **server.recording)
            return self.json(server.recording)
        name, what = self.name(), path.split("/")[3]
        if name not in server.proxies:
            return self.error(404, "proxy not found")
        if what == "link":
            if self.command == "DELETE":
                server.set_link(name, "none")
            elif "timeline" in fields:
                server.set_link(name, "3g", timeline=fields["timeline"])
            elif fields["profile"] in PROFILES:
                server.set_link(name, fields["profile"], reset_after=fields.get("reset_after_ms"))
            else:
                return self.error(400, "unknown profile '%s'" % fields["profile"])
            return self.json(server.proxies[name]["link"])
        if what == "outage":
            outage = {"up": False, "down": False, **(fields or {})}
            server.set_link(name, server.proxies[name]["link"]["name"], outage=outage)
            return self.json(outage)
        if what == "faults" and self.command == "POST":
            fault = {"name": "fault_%d" % len(server.calls), "rule": fields["rule"], "matched": 0, "applied": 0, "fired": 0}
            server.proxies[name]["faults"].append(fault)
            server.emit("fault", proxy=name, t=now(), change="added", name=fault["name"], rule=fault["rule"], fired=0, exchange=None, point=None, offset=None)
            server.set_link(name, server.proxies[name]["link"]["name"])
            return self.json(fault, 201)
        if what == "faults":
            server.emit("fault", proxy=name, t=now(), change="removed", name=path.split("/")[4], rule="", fired=0, exchange=None, point=None, offset=None)
            return self.respond(204)
        if what == "timeline":
            return self.json({})
        return self.json({"closed": 1})

    do_PUT = do_POST = do_PATCH = do_DELETE = change
