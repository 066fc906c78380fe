"""HTTPS servers for scripts/soak http2 --part intercept: HTTP/2 and HTTP/1.1 by ALPN, git's smart protocol, and gRPC.

They count each POST that they have executed, in order, with the protocol and whether the body was the expected one.
"""
import asyncio
import collections
import concurrent.futures
import hashlib
import itertools
import os
import re
import ssl
import subprocess
import threading

import grpc
import h11
import h2.config
import h2.connection
import h2.events

# `number` counts requests in the order of their beginnings.
Post = collections.namedtuple("Post", "number path version is_right")
RESOURCES = 50


def digest(data):
    return hashlib.sha256(data).hexdigest()


def certificates(folder):
    """Makes an authority and a certificate for the hosts of the tests. Returns the paths of the authority, the certificate and its key."""
    authority, key, request, certificate, own_key = (
        os.path.join(folder, name) for name in ("ca.pem", "ca.key", "request.pem", "server.pem", "server.key"))
    names = os.path.join(folder, "names")
    with open(names, "w") as file:
        file.write("subjectAltName=DNS:origin.test,DNS:grpc.test\nextendedKeyUsage=serverAuth\n")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for words in (["req", "-x509", *new_key, "-keyout", key, "-subj", "/CN=soak authority", "-days", "2", "-out", authority],
                  ["req", *new_key, "-keyout", own_key, "-subj", "/CN=origin.test", "-out", request],
                  ["x509", "-req", "-in", request, "-CA", authority, "-CAkey", key, "-CAcreateserial", "-days", "2", "-extfile", names,
                   "-out", certificate]):
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    return authority, certificate, own_key


def resource(number):
    """Returns a script of the page, of 2 to 12 kB."""
    return b"seen.push(%d);/*%s*/" % (number, bytes(97 + (number * step) % 26 for step in range(2_000 + number * 200)))


class Site:
    """The resources, and the POST requests of each run, whose name is in the paths: /run/NAME/..."""

    def __init__(self, folder):
        self.data, self.body = os.urandom(300_000), os.urandom(100_000)
        self.numbers = itertools.count()
        self.posts = collections.defaultdict(list)
        self.repositories = os.path.join(folder, "repositories")
        work = os.path.join(folder, "work")
        for words in (["init", "-q", work], ["-C", work, "config", "user.email", "a@a.test"], ["-C", work, "config", "user.name", "a"]):
            subprocess.run(["git", *words], check=True)
        with open(os.path.join(work, "data"), "wb") as file:
            file.write(self.data)
        for words in (["-C", work, "add", "."], ["-C", work, "commit", "-q", "-m", "data"],
                      ["clone", "-q", "--bare", work, os.path.join(self.repositories, "repo.git")]):
            subprocess.run(["git", *words], check=True)

    def page(self):
        scripts = "".join('<script src="res/%d.js" defer></script>' % number for number in range(RESOURCES))
        return ('<!doctype html><link rel="icon" href="data:,"><script>seen = []</script>%s' % scripts).encode()

    def respond(self, number, version, method, target, fields, body):
        """Executes a request, whose number is the next one of `numbers` at its beginning. Returns a status, a type and a body."""
        path, _, query = target.partition("?")
        match = re.fullmatch(r"/run/([^/]+)/(.*)", path)
        if not match:
            return 404, "text/plain", b""
        name, rest = match.groups()
        if rest.startswith("repo.git/"):
            if method == "POST":
                self.posts[name].append(Post(number, path, version, True))
            return self.git(method, rest, query, fields, body)
        if method == "POST":
            self.posts[name].append(Post(number, path, version, body == self.body))
            return 200, "text/plain", b"r" * 20_000
        script = re.fullmatch(r"res/(\d+)\.js", rest)
        if script:
            return 200, "text/javascript", resource(int(script.group(1)))
        kinds = {"data": self.data, "body": self.body}
        if rest in kinds:
            return 200, "application/octet-stream", kinds[rest]
        return (200, "text/html", self.page()) if rest == "page" else (404, "text/plain", b"")

    def git(self, method, rest, query, fields, body):
        variables = {"GIT_PROJECT_ROOT": self.repositories, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": "/" + rest, "QUERY_STRING": query,
                     "REQUEST_METHOD": method, "CONTENT_TYPE": fields.get("content-type", ""), "CONTENT_LENGTH": str(len(body)),
                     "HTTP_CONTENT_ENCODING": fields.get("content-encoding", ""), "GIT_PROTOCOL": fields.get("git-protocol", ""),
                     "REMOTE_ADDR": "127.0.0.1", "PATH": os.environ["PATH"], "HOME": self.repositories}
        output = subprocess.run(["git", "http-backend"], input=body, env=variables, capture_output=True, check=False).stdout
        head, _, content = output.partition(b"\r\n\r\n")
        status = re.search(rb"^Status: (\d+)", head, re.M)
        kind = re.search(rb"^Content-Type: (\S+)", head, re.M)
        return int(status.group(1)) if status else 200, kind.group(1).decode() if kind else "text/plain", content


class Connection(asyncio.Protocol):
    """A connection of either version."""

    def __init__(self, site):
        self.site, self.requests, self.left = site, {}, {}

    def connection_made(self, transport):
        self.transport = transport
        self.is_two = transport.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        if self.is_two:
            self.two = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
            self.two.initiate_connection()
            self.flush()
        else:
            self.one, self.request = h11.Connection(h11.SERVER), None

    def data_received(self, data):
        (self.receive_two if self.is_two else self.receive_one)(data)

    # HTTP/2

    def receive_two(self, data):
        try:
            events = self.two.receive_data(data)
        except h2.exceptions.ProtocolError:
            self.flush()
            return self.transport.close()
        for event in events:
            stream = getattr(event, "stream_id", None)
            if isinstance(event, h2.events.RequestReceived):
                self.requests[stream] = (next(self.site.numbers), dict(event.headers), bytearray())
            elif isinstance(event, h2.events.DataReceived):
                self.two.acknowledge_received_data(event.flow_controlled_length, stream)
                if stream in self.requests:
                    self.requests[stream][2].extend(event.data)
            elif isinstance(event, h2.events.StreamEnded) and stream in self.requests:
                number, fields, body = self.requests.pop(stream)
                status, kind, content = self.site.respond(number, "h2", fields[":method"], fields[":path"], fields, bytes(body))
                self.two.send_headers(stream, [
                    (":status", str(status)), ("content-type", kind), ("content-length", str(len(content))), ("cache-control", "no-store")])
                self.left[stream] = memoryview(content)
            elif isinstance(event, h2.events.StreamReset):
                self.requests.pop(stream, None)
                self.left.pop(stream, None)
        for stream in list(self.left):
            self.send(stream)
        self.flush()

    def send(self, stream):
        while stream in self.left:
            size = min(len(self.left[stream]), self.two.local_flow_control_window(stream), self.two.max_outbound_frame_size)
            is_last = size == len(self.left[stream])
            if size <= 0 and not is_last:
                return
            self.two.send_data(stream, bytes(self.left[stream][:size]), end_stream=is_last)
            self.left[stream] = self.left[stream][size:]
            if is_last:
                del self.left[stream]

    def flush(self):
        data = self.two.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    # HTTP/1.1

    def receive_one(self, data):
        try:
            self.one.receive_data(data)
            while True:
                event = self.one.next_event()
                if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                    return
                if isinstance(event, h11.Request):
                    self.request, self.content = event, bytearray()
                    if self.one.they_are_waiting_for_100_continue:
                        self.transport.write(self.one.send(h11.InformationalResponse(status_code=100, headers=[])))
                elif isinstance(event, h11.Data):
                    self.content.extend(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    self.respond_one()
        except h11.ProtocolError:
            self.transport.close()

    def respond_one(self):
        fields = {name.decode(): value.decode() for name, value in self.request.headers}
        status, kind, content = self.site.respond(
            next(self.site.numbers), "http/1.1", self.request.method.decode(), self.request.target.decode(), fields, bytes(self.content))
        for event in (h11.Response(status_code=status, headers=[
                ("Content-Type", kind), ("Content-Length", str(len(content))), ("Cache-Control", "no-store")]),
                h11.Data(data=content), h11.EndOfMessage()):
            self.transport.write(self.one.send(event))
        if self.one.our_state is h11.MUST_CLOSE:
            self.transport.close()
        else:
            self.one.start_next_cycle()

    def eof_received(self):
        return False


class Origin:
    """Both servers, in threads of this process."""

    def __init__(self, folder):
        self.authority, certificate, key = certificates(folder)
        self.site = Site(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(["h2", "http/1.1"])
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        starting = self.loop.create_server(lambda: Connection(self.site), "127.0.0.1", 0, ssl=context, backlog=1000)
        self.server = asyncio.run_coroutine_threadsafe(starting, self.loop).result(10)
        self.port = self.server.sockets[0].getsockname()[1]
        with open(certificate, "rb") as file, open(key, "rb") as key_file:
            credentials = grpc.ssl_server_credentials([(key_file.read(), file.read())])
        self.grpc = grpc.server(concurrent.futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        self.grpc.add_generic_rpc_handlers((self.handler(),))
        self.grpc_port = self.grpc.add_secure_port("127.0.0.1:0", credentials)
        self.grpc.start()

    def handler(self):
        """Each call has the name of its run and the number of the call in its metadata."""
        def executed(number, context, body):
            fields = dict(context.invocation_metadata())
            path = "/slowlane.Test/%s/%s" % (fields["kind"], fields["number"])
            self.site.posts[fields["run"]].append(Post(number, path, "h2", body == self.site.body))

        def unary(request, context):
            executed(next(self.site.numbers), context, request)
            return self.site.data

        def upload(requests, context):
            number = next(self.site.numbers)
            executed(number, context, b"".join(requests))
            return self.site.data

        def download(request, context):
            executed(next(self.site.numbers), context, request)
            for start in range(0, len(self.site.data), 10_000):
                yield self.site.data[start:start + 10_000]

        return grpc.method_handlers_generic_handler("slowlane.Test", {
            "unary": grpc.unary_unary_rpc_method_handler(unary), "upload": grpc.stream_unary_rpc_method_handler(upload),
            "download": grpc.unary_stream_rpc_method_handler(download)})

    def stop(self):
        self.loop.call_soon_threadsafe(self.server.close)
        self.grpc.stop(None).wait()
