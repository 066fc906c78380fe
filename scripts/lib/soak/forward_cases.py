"""The generated conversations of scripts/soak forward: requests with the plans of their responses."""
import dataclasses
import random

HOP_BY_HOP = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade", b"transfer-encoding", b"content-length"}
DATE = (b"Date", b"Thu, 26 Nov 2026 10:00:00 GMT")


@dataclasses.dataclass
class Exchange:
    """A request, the plan of its response, and what both sides must see of them."""
    method: bytes = b"GET"
    path: bytes = b"/"
    version: bytes = b"HTTP/1.1"
    fields: list = dataclasses.field(default_factory=list)
    framing: str = "none"
    body: bytes = b""
    trailers: list = dataclasses.field(default_factory=list)
    extension: bytes = b""
    # Absolute form: changes of the URL, and whether Host is another one or missing.
    url: str = ""
    host: str = "same"
    interims: list = dataclasses.field(default_factory=list)
    status: int = 200
    reason: bytes = b"OK"
    answer_fields: list = dataclasses.field(default_factory=list)
    answer_framing: str = "length"
    answer: bytes = b""
    answer_trailers: list = dataclasses.field(default_factory=list)
    answer_version: bytes = b"HTTP/1.1"
    # expect: `100` or `final`; early: a response before the body; echo: chunks while the request arrives.
    mode: str = ""
    # How the origin ends: `keep`, `fin` or `rst`; `cut`: after this number of bytes of the response.
    end: str = "keep"
    cut: int = -1
    # The client ends its request after this number of bytes of the body.
    client_cut: int = -1
    origin: int = 0

    def chunks(self, rnd, body, extension, trailers):
        pieces, position = [], 0
        while position < len(body):
            size = rnd.choice([1, 2, 15, 16, 255, 4096, 65536, rnd.randrange(1, 9000)])
            piece = body[position:position + size]
            number = rnd.choice([b"%x", b"%X", b"0%x", b"000%X"]) % len(piece)
            pieces.append(number + extension + b"\r\n" + piece + b"\r\n")
            position += size
        return b"".join(pieces) + b"0" + extension + b"\r\n" + b"".join(b"%s: %s\r\n" % field for field in trailers) + b"\r\n"

    def request(self, rnd, target, authority, case):
        """Returns the head and the body's bytes."""
        host = {"same": [(b"Host", authority)], "other": [(b"Host", b"other.test")], "none": []}[self.host]
        fields = host + [(b"X-Case", case)] + self.fields
        body = self.body
        if self.framing == "length":
            fields.append((b"Content-Length", b"%d" % len(self.body)))
        elif self.framing == "chunked":
            fields.append((b"Transfer-Encoding", b"chunked"))
            body = self.chunks(rnd, self.body, self.extension, self.trailers)
        head = b"%s %s %s\r\n" % (self.method, target, self.version)
        return head + b"".join(b"%s: %s\r\n" % field for field in fields) + b"\r\n", body

    @property
    def has_answer_body(self):
        return self.method != b"HEAD" and self.status not in (204, 304) and self.status >= 200

    def plan(self, rnd):
        """Returns the actions of the origin."""
        head = b"%s %d %s\r\n" % (self.answer_version, self.status, self.reason)
        fields, body = list(self.answer_fields), self.answer
        if self.answer_framing == "chunked":
            fields.append((b"Transfer-Encoding", b"chunked"))
            body = self.chunks(rnd, self.answer, self.extension, self.answer_trailers)
        elif self.answer_framing == "length" and self.status not in (101, 204, 304):
            fields.append((b"Content-Length", b"%d" % len(self.answer)))
        if not self.has_answer_body or self.mode == "echo":
            body = b""
        head += b"".join(b"%s: %s\r\n" % field for field in fields) + b"\r\n"
        before = b"".join(b"HTTP/1.1 %d %s\r\n%s\r\n" % (code, text, b"".join(b"%s: %s\r\n" % field for field in more))
                          for code, text, more in self.interims)
        actions = []
        if self.mode == "100":
            actions += [("send", before), ("read", None)]
            before = b""
        elif self.mode not in ("final", "early", "echo"):
            actions.append(("read", None))
        if self.mode == "never":
            return actions + [("await end", None)]
        if self.cut >= 0:
            whole = head + body
            actions.append(("send", before + whole[:self.cut]))
        elif self.mode == "echo":
            actions += [("send", before + head), ("echo-chunks", None)]
        else:
            actions.append(("send", before + head + body))
        if self.status == 101:
            actions.append(("echo", b"farewell"))
        elif self.mode == "early" and self.end == "keep":
            actions.append(("read", None))
        elif self.end != "keep":
            actions.append((self.end, None))
        return actions


@dataclasses.dataclass
class Conversation:
    number: int
    feature: str
    exchanges: list
    pipelined: bool = False
    # How the client ends: `close`, `half` (FIN after the last request) or `rst`.
    end: str = "close"


class Cases:
    """Generates conversations; each feature comes in turn."""

    def __init__(self, seed, count, only=None):
        self.rnd = random.Random(seed)
        makers = [(name[5:].replace("_", " "), getattr(self, name)) for name in dir(self) if name.startswith("make_")]
        makers = [maker for maker in makers if only is None or maker[0] in only]
        self.conversations, requests = [], 0
        while requests < count:
            name, make = makers[len(self.conversations) % len(makers)]
            conversation = make()
            if isinstance(conversation, list):
                conversation = Conversation(0, name, conversation)
            conversation.number, conversation.feature = len(self.conversations), name
            self.conversations.append(conversation)
            requests += len(conversation.exchanges)
        self.requests = requests

    # Parts

    def data(self, most=3000):
        return self.rnd.randbytes(self.rnd.choice([0, 1, 2, self.rnd.randrange(most + 1), most]))

    def token(self):
        return bytes(self.rnd.choice(b"abcdefghijklmnopqrstuvwxyzABCXYZ0123456789!#$%&'*+-.^_`|~") for _ in range(self.rnd.randrange(1, 12)))

    def path(self):
        words = [b"a", b"index.html", b"%7Euser", b"b;p=1", b"..", b".", b"", b"x,y", b"@", b"c:d", b"%00%ff", b"(1)*'!$&+="]
        path = b"/" + b"/".join(self.rnd.choice(words) for _ in range(self.rnd.randrange(4)))
        return path + self.rnd.choice([b"", b"", b"?", b"?q=1&r=%20", b"?a/b?c", b"?x=http://other.test/"])

    def plain(self, **changes):
        rnd = self.rnd
        exchange = Exchange(path=self.path(), answer_fields=[DATE, (b"Content-Type", b"text/plain")], answer=self.data())
        if rnd.random() < 0.4:
            exchange.method, exchange.framing, exchange.body = rnd.choice([b"POST", b"PUT", b"PATCH"]), "length", self.data()
        if rnd.random() < 0.3:
            exchange.answer_framing = "chunked"
        return dataclasses.replace(exchange, **changes)

    def several(self, least=1, most=3):
        return [self.plain() for _ in range(self.rnd.randrange(least, most + 1))]

    # Features

    def make_keep_alive(self):
        return self.several(2, 5)

    def make_pipelining(self):
        return Conversation(0, "", self.several(3, 6), pipelined=True)

    def make_chunked_both_ways(self):
        rnd = self.rnd
        extension = rnd.choice([b"", b";a", b";a=1", b';name="quoted ; text"', b" ; b=2"])
        trailers = rnd.choice([[], [(b"X-Sum", b"abc")], [(b"X-A", b"1"), (b"X-A", b"2")]])
        return [self.plain(method=b"POST", framing="chunked", body=self.data(20000), answer_framing="chunked", answer=self.data(20000),
                           extension=extension, trailers=trailers, answer_trailers=trailers)] + self.several()

    def make_expect_continue(self):
        expected = self.plain(method=b"PUT", framing=self.rnd.choice(["length", "chunked"]), body=self.rnd.randbytes(2000),
                              fields=[(b"Expect", self.rnd.choice([b"100-continue", b"100-Continue"]))], mode="100",
                              interims=[(100, b"Continue", [])])
        return [expected] + self.several()

    def make_expect_refused(self):
        return [self.plain(method=b"PUT", framing="length", body=self.rnd.randbytes(2000), fields=[(b"Expect", b"100-continue")],
                           mode="final", status=self.rnd.choice([417, 413, 401]), reason=b"No", answer_framing="length",
                           answer_fields=[DATE, (b"Connection", b"close")], end="fin")]

    def make_early_response(self):
        return [self.plain(method=b"POST", framing="length", body=self.rnd.randbytes(self.rnd.choice([3000, 300_000])), mode="early",
                           status=413, reason=b"Content Too Large", answer_fields=[DATE], end=self.rnd.choice(["keep", "fin"]))]

    def make_origin_closes_early(self):
        rnd = self.rnd
        exchange = self.plain(answer=rnd.randbytes(2000), end=rnd.choice(["fin", "rst"]), method=b"GET", framing="none", body=b"")
        exchange.answer_framing = rnd.choice(["length", "chunked"])
        exchange.cut = rnd.choice([0, 0, 10, 400, 1500])
        return self.several(0, 1) + [exchange]

    def make_client_closes_early(self):
        rnd = self.rnd
        if rnd.random() < 0.4:
            return Conversation(0, "", [self.plain(method=b"GET", framing="none", body=b"", mode="never")], end="rst")
        # A request whose end is missing must not be executed (RFC 9112, 8).
        exchange = self.plain(method=b"POST", framing=rnd.choice(["length", "chunked"]), body=rnd.randbytes(6000), client_cut=2000)
        return Conversation(0, "", [exchange], end=rnd.choice(["rst", "half"]))

    def make_head(self):
        kinds = [dict(answer_framing="length"), dict(answer_framing="chunked"), dict(answer_framing="none")]
        return [self.plain(method=b"HEAD", framing="none", body=b"", **self.rnd.choice(kinds)) for _ in range(3)] + self.several()

    def make_no_content(self):
        kinds = [dict(status=204, reason=b"No Content", answer_framing="none"),
                 dict(status=304, reason=b"Not Modified", answer_framing="none", answer_fields=[DATE, (b"ETag", b'"x"'), (b"Content-Length", b"500")]),
                 dict(status=304, reason=b"Not Modified", answer_framing="none", answer_fields=[DATE, (b"ETag", b'W/"y"')]),
                 dict(status=205, reason=b"Reset Content", answer=b"", answer_framing="length")]
        return [self.plain(method=b"GET", framing="none", body=b"", fields=[(b"If-None-Match", b'"x"')], **self.rnd.choice(kinds))
                for _ in range(3)] + self.several()

    def make_upgrade(self):
        fields = [(b"Connection", self.rnd.choice([b"Upgrade", b"keep-alive, Upgrade"])), (b"Upgrade", b"websocket"),
                  (b"Sec-WebSocket-Version", b"13"), (b"Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ==")]
        answer = [DATE, (b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"), (b"Sec-WebSocket-Accept", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")]
        return [self.plain(method=b"GET", framing="none", body=b"", fields=fields, status=101, reason=b"Switching Protocols",
                           answer_fields=answer, answer_framing="none")]

    def make_upgrade_ignored(self):
        fields = [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"), (b"Sec-WebSocket-Version", b"13")]
        return [self.plain(method=b"GET", framing="none", body=b"", fields=fields)] + self.several()

    def make_large_bodies(self):
        up, down = self.rnd.randbytes(1_500_000), self.rnd.randbytes(2_500_000)
        return self.rnd.choice([
            [self.plain(method=b"POST", framing="length", body=up, answer=down, answer_framing="length")],
            [self.plain(method=b"POST", framing="chunked", body=up, answer=down, answer_framing="chunked")],
            [self.plain(method=b"POST", framing="chunked", body=up, answer=up, answer_framing="chunked", mode="echo")],
        ]) + self.several(0, 1)

    def make_half_close(self):
        return Conversation(0, "", self.several(1, 2), end="half")

    def make_several_origins(self):
        exchanges = self.several(3, 6)
        for exchange in exchanges:
            exchange.origin = self.rnd.randrange(3)
        return Conversation(0, "", exchanges, pipelined=self.rnd.random() < 0.5)

    def make_connection_fields(self):
        rnd = self.rnd
        listed = rnd.choice([b"X-Hop", b"x-hop", b"X-Hop , keep-alive", b",X-Hop,,"])
        request = [(b"Connection", listed), (b"X-Hop", b"secret"), (b"X-End", b"to-end")]
        request += rnd.choice([[], [(b"Keep-Alive", b"timeout=5")], [(b"TE", b"trailers")], [(b"Proxy-Connection", b"keep-alive")]])
        answer = [DATE, (b"Connection", b"X-Back"), (b"X-Back", b"secret"), (b"Keep-Alive", b"timeout=9"), (b"X-End", b"e")]
        return [self.plain(fields=request, answer_fields=answer)] + self.several()

    def make_odd_bytes(self):
        rnd = self.rnd
        fields = [(self.token() + b"-X", rnd.choice([b"", b"a\tb", b"caf\xe9 \xff\x80", b"\xe2\x82\xac", b'"quoted \\" text"', b"a" * 3000,
                                                     b"(comment) , ,,", b"  padded  "])) for _ in range(rnd.randrange(1, 6))]
        fields += [(b"X-Same", b"1"), (b"x-same", b"2"), (b"X-SAME", b"")]
        reason = rnd.choice([b"", b"caf\xe9", b"A\tB", b"It's (fine)", b"OK"])
        return [self.plain(method=rnd.choice([b"GET", b"M-SEARCH", b"get", b"X!#$%&'*+.^_`|~"]), framing="none", body=b"", fields=fields,
                           reason=reason, status=rnd.choice([200, 203, 226, 299, 404, 418, 499, 599]), answer_fields=[DATE] + fields)
                ] + self.several()

    def make_http_10(self):
        keep = self.rnd.random() < 0.5
        exchange = self.plain(version=b"HTTP/1.0", answer_framing="length", answer_version=self.rnd.choice([b"HTTP/1.0", b"HTTP/1.1"]),
                              host=self.rnd.choice(["same", "none"]))
        if keep:
            exchange.fields.append((b"Connection", b"keep-alive"))
            exchange.answer_fields.append((b"Connection", b"keep-alive"))
            return [exchange] + self.several(1, 2)
        exchange.answer_fields.append((b"Connection", b"close"))
        exchange.end = "fin"
        return [exchange]

    def make_until_close(self):
        return self.several(0, 1) + [self.plain(answer_framing="close", end="fin", answer=self.rnd.randbytes(5000))]

    def make_interim_responses(self):
        kinds = [(100, b"Continue", []), (102, b"Processing", []), (103, b"Early Hints", [(b"Link", b"</a.css>; rel=preload")]), (199, b"", [])]
        return [self.plain(interims=self.rnd.sample(kinds, self.rnd.randrange(1, 4)))] + self.several()

    def make_urls(self):
        kinds = [dict(url="HTTP"), dict(url="query", path=b"/?x=1"), dict(url="empty", path=b"/"), dict(host="other"), dict(url="fragment"),
                 dict(url="options", method=b"OPTIONS", path=b"*", framing="none", body=b"")]
        return [self.plain(**self.rnd.choice(kinds)) for _ in range(3)]

    def make_max_forwards(self):
        return [self.plain(method=self.rnd.choice([b"OPTIONS", b"TRACE"]), framing="none", body=b"", fields=[(b"Max-Forwards", number)])
                for number in (b"5", b"0")]
