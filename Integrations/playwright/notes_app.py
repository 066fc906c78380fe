"""The app under test: a notes page with an outbox, and its server."""
import http.server
import json
import pathlib
import threading

PAGE = pathlib.Path(__file__).with_name("page.html").read_bytes()


class NotesApp(http.server.ThreadingHTTPServer):
    """The server on a free port; the tests read its state."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        #: The text of each note by its identifier, in the order of their arrival.
        self.notes = {}
        #: The number of PUT requests for each identifier.
        self.puts = {}
        #: Set when a note has been stored.
        self.stored = threading.Event()
        #: Responses to PUT wait until this event is set.
        self.may_respond = threading.Event()
        self.may_respond.set()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.server_port

    def put(self, identifier, text):
        """Stores a note. A note that is sent again replaces itself."""
        with self.lock:
            self.notes[identifier] = text
            self.puts[identifier] = self.puts.get(identifier, 0) + 1
        self.stored.set()

    def handle_error(self, *_):
        # Connections that end in the middle are part of the tests.
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        if self.path == "/":
            self._respond(PAGE, "text/html; charset=utf-8")
        elif self.path == "/notes":
            with self.server.lock:
                notes = [{"id": identifier, "text": text} for identifier, text in self.server.notes.items()]
            self._respond(json.dumps(notes).encode(), "application/json")
        else:
            self.send_error(404)

    def do_PUT(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.put(self.path.rpartition("/")[2], text)
        self.server.may_respond.wait(60)
        self._respond(b"{}", "application/json")

    def _respond(self, body, media_type):
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
