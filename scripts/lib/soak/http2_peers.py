"""Peers of HTTP/2 with prior knowledge for scripts/soak http2: they send what a seed decides, and keep every byte."""
import asyncio
import random
import struct

import h2.config
import h2.connection
import h2.errors
import h2.events
import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NAMES = ["data", "headers", "priority", "rst_stream", "settings", "push_promise", "ping", "goaway", "window_update", "continuation"]
SETTING_TABLE = 1
FRAME_MAX = 16_384
CODES = [0, 2, 5, 7, 8, 11, 13]


def frames(data, table_max):
    """Returns the frames of one direction as tuples, with their fields instead of header blocks; CONTINUATION is joined."""
    decoder, result, position = hpack.Decoder(), [], len(PREFACE) if data.startswith(PREFACE) else 0
    decoder.max_allowed_table_size = table_max
    pending = None
    while position + 9 <= len(data):
        length = int.from_bytes(data[position:position + 3], "big")
        kind, flags = data[position + 3], data[position + 4]
        stream = int.from_bytes(data[position + 5:position + 9], "big")
        payload = data[position + 9:position + 9 + length]
        position += 9 + length
        name = NAMES[kind] if kind < len(NAMES) else "type %d" % kind
        if name in ("headers", "continuation"):
            pending = (flags, payload) if name == "headers" else (pending[0], pending[1] + payload)
            if flags & 4:
                fields = tuple((bytes(key), bytes(value)) for key, value in decoder.decode(pending[1], raw=True))
                result.append(("headers", pending[0] & ~4, stream, fields))
        elif name == "data":
            result.append((name, flags, stream, length, payload))
        elif name == "settings":
            result.append((name, flags, stream, tuple(sorted(struct.iter_unpack("!HI", payload)))))
        elif name in ("rst_stream", "window_update"):
            result.append((name, flags, stream, int.from_bytes(payload, "big")))
        else:
            result.append((name, flags, stream, payload))
    if position != len(data):
        result.append(("rest", len(data) - position))
    return result


class Peer(asyncio.Protocol):
    """One side of a connection. Each DATA is credited at once, so that the credit for a connection equals its DATA."""

    def __init__(self, is_client, seed):
        self.rnd = random.Random(seed)
        self.sent, self.received, self.left, self.trailers = bytearray(), bytearray(), {}, {}
        self.error, self.closed = None, asyncio.get_running_loop().create_future()
        self.connection = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=is_client, header_encoding="utf-8", validate_inbound_headers=False))

    def connection_made(self, transport):
        self.transport = transport
        self.connection.initiate_connection()
        if self.rnd.random() < 0.5:
            self.connection.update_settings({4: self.rnd.choice([65_535, 100_000, 20_000])})
        self.flush()

    def connection_lost(self, error):
        if not self.closed.done():
            self.closed.set_result(error)

    def data_received(self, data):
        self.received += data
        try:
            for event in self.connection.receive_data(data):
                if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                    self.connection.increment_flow_control_window(event.flow_controlled_length)
                    if event.stream_ended is None and self.is_open(event.stream_id):
                        self.connection.increment_flow_control_window(event.flow_controlled_length, event.stream_id)
                self.handle(event)
            self.send()
        except Exception as error:  # noqa: BLE001 - what the library rejects is the result of the test
            self.error = self.error or repr(error)
            self.transport.abort()

    def is_open(self, stream):
        state = self.connection.streams.get(stream)
        return state is not None and not state.closed

    def body(self, stream, size, trailers=False):
        self.left[stream] = size
        self.trailers[stream] = trailers

    def send(self):
        """Sends what the windows permit, in pieces of random sizes."""
        for stream in list(self.left):
            while stream in self.left:
                if not self.is_open(stream):
                    del self.left[stream]
                    break
                room = self.connection.local_flow_control_window(stream)
                size = min(self.left[stream], room, FRAME_MAX, self.rnd.choice([1, 100, 5_000, FRAME_MAX]))
                # Smaller SETTINGS of the peer may have made the window negative.
                if size < 0 or size == 0 and self.left[stream]:
                    break
                self.left[stream] -= size
                is_last = self.left[stream] == 0
                ends = is_last and not self.trailers[stream]
                if size or ends:
                    padding = self.rnd.choice([None, None, None, 7]) if size and size + 8 <= min(room, FRAME_MAX) else None
                    self.connection.send_data(stream, b"d" * size, end_stream=ends, pad_length=padding)
                if is_last:
                    del self.left[stream]
                    if not ends:
                        self.connection.send_headers(stream, [("grpc-status", "0"), ("x-end", "t" * 20)], end_stream=True)
        self.flush()

    def flush(self):
        data = self.connection.data_to_send()
        self.sent += data
        if data and not self.transport.is_closing():
            self.transport.write(data)


class Server(Peer):
    """/SIZE, /trailers/SIZE, /hints/SIZE: a response; /reset/CODE: HEADERS and RST_STREAM; /wait: HEADERS only."""

    def __init__(self, seed, all_connections):
        super().__init__(False, seed)
        self.paths = {}
        all_connections.append(self)

    def handle(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.paths[event.stream_id] = dict(event.headers)[":path"].split("/")
            if self.paths[event.stream_id][1] == "refuse":
                self.connection.reset_stream(event.stream_id, h2.errors.ErrorCodes.REFUSED_STREAM)
        elif isinstance(event, h2.events.StreamEnded) and self.is_open(event.stream_id):
            stream, (_, first, *rest) = event.stream_id, self.paths[event.stream_id]
            if first == "hints":
                self.connection.send_headers(stream, [(":status", "103"), ("link", "</a>")])
            self.connection.send_headers(stream, [(":status", "201"), ("x-path", "/".join(self.paths[stream])), ("x-same", "s" * 30)])
            if first == "reset":
                self.connection.reset_stream(stream, int(rest[0]))
            elif first != "wait":
                self.body(stream, int((rest or [first])[0]), first == "trailers")
        elif isinstance(event, h2.events.StreamReset):
            self.left.pop(event.stream_id, None)


class Client(Peer):
    """Sends the requests of a plan, `concurrent` at a time: (method, path, bytes of the body, whether it resets)."""

    def __init__(self, seed, plan, concurrent, patience=None):
        super().__init__(True, seed)
        self.plan, self.concurrent, self.patience = list(plan), concurrent, patience
        self.open, self.results, self.number = {}, {}, 0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        super().connection_made(transport)
        self.begin()
        self.send()

    def connection_lost(self, error):
        super().connection_lost(error)
        if not self.done.done():
            self.done.set_result(None)

    def begin(self):
        while self.plan and len(self.open) < self.concurrent:
            method, path, size, resets = self.plan.pop(0)
            stream = self.connection.get_next_available_stream_id()
            fields = [(":method", method), (":scheme", "http"), (":authority", "h"), (":path", path), ("x-number", str(self.number)),
                      ("user-agent", "soak"), ("x-long", "l" * (self.number % 7) * 500)]
            self.number += 1
            if method == "POST" and self.number % 3:
                fields.append(("content-length", str(size)))
            self.connection.send_headers(stream, fields, end_stream=method == "GET")
            self.results[path, self.number] = "open"
            self.open[stream] = (path, self.number, resets)
            if method == "POST":
                self.body(stream, size)
            if self.patience:
                asyncio.get_running_loop().call_later(self.patience, self.give_up, stream)
        if not self.plan and not self.open and not self.done.done():
            self.done.set_result(None)

    def give_up(self, stream):
        if stream in self.open and self.is_open(stream):
            self.connection.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
            self.end(stream, "gave up")
            self.send()

    def end(self, stream, result):
        path, number, _ = self.open.pop(stream)
        self.results[path, number] = result
        self.begin()

    def handle(self, event):
        stream = getattr(event, "stream_id", None)
        if stream not in self.open:
            return
        if isinstance(event, h2.events.ResponseReceived) and self.open[stream][2]:
            self.connection.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
            self.end(stream, "cancelled")
        elif isinstance(event, h2.events.StreamEnded):
            self.end(stream, "complete")
        elif isinstance(event, h2.events.StreamReset):
            self.end(stream, "reset %d" % event.error_code)


def plan(rnd, count, faulted=0):
    """Returns requests; one in `faulted` has a path of a fault."""
    requests = []
    for number in range(count):
        size = lambda: int(10 ** rnd.uniform(0, 4.7)) - 1
        method = rnd.choice(["GET", "POST", "POST"])
        path, resets = "/%d" % size(), False
        kind = rnd.randrange(20)
        if faulted:
            if number % faulted == faulted // 2:
                path = "/fault/%d" % size()
        elif kind == 0:
            path, resets = "/wait", True
        elif kind == 1:
            path = "/reset/%d" % rnd.choice(CODES)
        elif kind == 2 and method == "GET":
            path = "/refuse"
        elif kind < 6:
            path = "/trailers/%d" % size()
        elif kind < 8:
            path = "/hints/%d" % size()
        requests.append((method, path, size(), resets))
    return requests


async def converse(port_of_client, start_server, seed, connections, per_connection, concurrent, faulted=0, patience=None):
    """Runs connections at the same time. Returns their clients and the servers that they have reached."""
    loop, servers = asyncio.get_running_loop(), []
    server = await loop.create_server(lambda: Server("%s server" % seed, servers), "127.0.0.1", 0)
    port = await port_of_client(server.sockets[0].getsockname()[1])
    clients = []
    for number in range(connections):
        name = "%s %d" % (seed, number)
        requests = plan(random.Random(name), per_connection, faulted)
        _, client = await loop.create_connection(lambda: Client(name, requests, concurrent, patience), "127.0.0.1", port)
        clients.append(client)
    await asyncio.wait_for(asyncio.gather(*(client.done for client in clients)), 600)
    # Credit and acknowledgements are still on their way.
    await asyncio.sleep(0.5)
    for client in clients:
        client.transport.close()
    await asyncio.gather(*(client.closed for client in clients))
    for _ in range(100):
        if all(peer.closed.done() for peer in servers):
            break
        await asyncio.sleep(0.1)
    server.close()
    return clients, servers
