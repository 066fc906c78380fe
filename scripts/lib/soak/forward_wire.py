"""HTTP/1.x on blocking sockets for scripts/soak forward: a reader, an origin that follows plans, and its record of what it has seen."""
import socket
import struct
import threading

TIME_MAX = 10.0


class Ended(Exception):
    """The stream has ended: `fin`, `rst` or `timeout`, with the bytes of the item that was being read."""

    def __init__(self, how, partial=b""):
        super().__init__(how)
        self.how, self.partial = how, partial


class Reader:
    """Reads items of a stream; keeps all its bytes in `raw`."""

    def __init__(self, connection):
        self.connection, self.raw, self.position = connection, bytearray(), 0

    def more(self):
        try:
            data = self.connection.recv(65536)
        except ConnectionError:
            raise Ended("rst") from None
        except OSError:
            raise Ended("timeout") from None
        if not data:
            raise Ended("fin")
        self.raw += data

    def until(self, mark):
        searched = self.position
        while True:
            index = self.raw.find(mark, searched)
            if index >= 0:
                data = bytes(self.raw[self.position:index + len(mark)])
                self.position = index + len(mark)
                return data
            searched = max(self.position, len(self.raw) - len(mark) + 1)
            try:
                self.more()
            except Ended as ended:
                raise Ended(ended.how, bytes(self.raw[self.position:])) from None

    def exactly(self, count):
        while len(self.raw) - self.position < count:
            try:
                self.more()
            except Ended as ended:
                partial = bytes(self.raw[self.position:])
                self.position = len(self.raw)
                raise Ended(ended.how, partial) from None
        data = bytes(self.raw[self.position:self.position + count])
        self.position += count
        return data

    def some(self):
        if self.position == len(self.raw):
            self.more()
        data = bytes(self.raw[self.position:])
        self.position = len(self.raw)
        return data

    def head(self):
        """Returns a start line and fields; skips empty lines before it."""
        while True:
            if self.position == len(self.raw):
                self.more()
            if self.raw[self.position:self.position + 1] in (b"\r", b"\n"):
                self.until(b"\n")
            else:
                break
        lines = self.until(b"\r\n\r\n")[:-4].split(b"\r\n")
        return lines[0], [split_field(line) for line in lines[1:]]


def split_field(line):
    name, _, value = line.partition(b":")
    return name, value.strip(b" \t")


def values(fields, name):
    return [value for key, value in fields if key.lower() == name]


def tokens(fields, name):
    return {token.strip().lower() for value in values(fields, name) for token in value.split(b",") if token.strip()}


class Body:
    """What was read of a body: its bytes, trailers, framing, and `complete` or how the stream ended."""

    def __init__(self, reader, fields, without=False, until_close=False, piece=None):
        self.data, self.trailers, self.end, self.framing = bytearray(), [], "complete", "none"
        lengths = values(fields, b"content-length")
        try:
            if without:
                return
            if b"chunked" in tokens(fields, b"transfer-encoding"):
                self.framing = "chunked"
                self.read_chunks(reader, piece)
            elif lengths:
                self.framing = "length"
                left = int(lengths[0].split(b",")[0])
                while left:
                    data = reader.exactly(min(left, 65536))
                    left -= len(data)
                    self.add(data, piece)
            elif until_close:
                self.framing = "close"
                while True:
                    self.add(reader.some(), piece)
        except Ended as ended:
            self.data += ended.partial if self.framing == "length" else b""
            self.end = "complete" if self.framing == "close" and ended.how == "fin" else ended.how

    def add(self, data, piece):
        self.data += data
        if piece:
            piece(data)

    def read_chunks(self, reader, piece):
        while True:
            size = int(reader.until(b"\r\n").split(b";")[0].strip(), 16)
            if not size:
                break
            try:
                self.add(reader.exactly(size), piece)
            except Ended as ended:
                self.data += ended.partial
                raise
            if reader.exactly(2) != b"\r\n":
                raise Ended("bad chunk")
        while True:
            line = reader.until(b"\r\n")[:-2]
            if not line:
                return
            self.trailers.append(split_field(line))


def abort(connection):
    """Closes with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Seen:
    """A request that an origin has seen."""

    def __init__(self, port, line, fields):
        self.port, self.fields, self.body = port, fields, None
        words = line.split(b" ")
        self.method, self.target, self.version = words[0], b" ".join(words[1:-1]), words[-1]


class Origin:
    """A server that does for each request what its plan says. A plan is found by the field X-Case."""

    def __init__(self, plans):
        self.plans, self.seen, self.streams, self.condition = plans, {}, {}, threading.Condition()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        connection.settimeout(2 * TIME_MAX)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader, keys, end = Reader(connection), [], "fin"
        try:
            while True:
                line, fields = reader.head()
                key = (values(fields, b"x-case") or [b"?"])[0].decode("latin-1")
                seen = Seen(self.port, line, fields)
                keys.append(key)
                with self.condition:
                    self.seen.setdefault(key, []).append(seen)
                    self.condition.notify_all()
                plan = self.plans.get(key.rsplit("@", 1)[0])
                if plan is None or not self.follow(plan, seen, connection, reader):
                    break
        except Ended as ended:
            end = ended.how
        except OSError as error:
            end = "rst" if isinstance(error, ConnectionError) else "timeout"
        finally:
            connection.close()
            with self.condition:
                for key in keys:
                    self.streams.setdefault(key, []).append((bytes(reader.raw), end))
                self.condition.notify_all()

    def follow(self, plan, seen, connection, reader):
        """Does what a plan says; returns whether the connection stays open."""
        for action, argument in plan:
            if action == "read":
                seen.body = Body(reader, seen.fields)
                if seen.body.end != "complete":
                    raise Ended(seen.body.end)
            elif action == "send":
                connection.sendall(argument)
            elif action == "echo-chunks":
                # Chunks of the response are sent while the request arrives.
                seen.body = Body(reader, seen.fields, piece=lambda data: connection.sendall(b"%x\r\n%s\r\n" % (len(data), data)))
                if seen.body.end != "complete":
                    raise Ended(seen.body.end)
                connection.sendall(b"0\r\n\r\n")
            elif action == "echo":
                try:
                    while True:
                        connection.sendall(reader.some())
                except Ended as ended:
                    if ended.how != "fin":
                        raise
                connection.sendall(argument)
                return False
            elif action == "fin":
                connection.shutdown(socket.SHUT_WR)
                while True:
                    reader.some()
            elif action == "rst":
                abort(connection)
                raise Ended("own rst")
            elif action == "await end":
                while True:
                    reader.some()
        return True

    def wait(self, key, count=1, ended=True, seconds=5.0):
        """Waits until requests with a key were seen and their connections have ended."""
        with self.condition:
            self.condition.wait_for(
                lambda: len((self.streams if ended else self.seen).get(key, [])) >= count, seconds)
            return list(self.seen.get(key, [])), list(self.streams.get(key, []))
