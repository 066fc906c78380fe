"""A server and a client of HTTP/2 with prior knowledge, by the packages h2 and httpx.

    http2_peer.py serve             prints its port, then a line per request: stream, method, path, bytes of the body
    http2_peer.py post PORT COUNT   sends POST requests at the same time on one connection, and prints their results
    http2_peer.py order             sends one POST to SLOWLANE_URL until there is a response: a program of a scenario
"""

import asyncio
import os
import sys
import time

import h2.config
import h2.connection
import h2.events
import httpx


class Server(asyncio.Protocol):
    """Responds to each request with 201 and 100 000 bytes, within the windows of the client. Accepts upgrades of HTTP/1.1."""

    body = b"r" * 100_000

    def connection_made(self, transport):
        self.transport = transport
        self.requests = {}
        self.left = {}
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.connection = h2.connection.H2Connection(config)
        self.first, self.upgraded = b"", None

    def upgrade(self, request):
        """Continues with HTTP/2; the request, of a POST whose body has been read, is stream 1 (RFC 7540, section 3.2)."""
        head, body = request.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        if len(body) < int(fields.get("content-length", 0)):
            return
        self.transport.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
        self.connection.initiate_upgrade_connection(fields["http2-settings"].encode())
        method, path, _ = lines[0].split(" ")
        print("upgraded", method, path, len(body), flush=True)
        # curl 7.88 has no room for a long response before its preface.
        self.upgraded, self.first = path, None
        self.flush()

    def data_received(self, data):
        if self.first is not None:
            self.first += data
            if not b"PRI * ".startswith(self.first[:6]):
                return self.upgrade(self.first) if b"\r\n\r\n" in self.first else None
            data, self.first = self.first, None
            self.connection.initiate_connection()
        elif self.upgraded:
            self.connection.send_headers(1, [(":status", "201"), ("x-path", self.upgraded)])
            self.left[1], self.upgraded = self.body, None
        for event in self.connection.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                fields = dict(event.headers)
                self.requests[event.stream_id] = [fields[":method"], fields[":path"], 0]
            elif isinstance(event, h2.events.DataReceived):
                self.requests[event.stream_id][2] += len(event.data)
                self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                method, path, size = self.requests[event.stream_id]
                print("request", event.stream_id, method, path, size, flush=True)
                self.connection.send_headers(event.stream_id, [(":status", "201"), ("x-path", path)])
                self.left[event.stream_id] = self.body
            elif isinstance(event, h2.events.StreamReset):
                print("reset", event.stream_id, int(event.error_code), flush=True)
                self.left.pop(event.stream_id, None)
        self.send()
        self.flush()

    def send(self):
        for stream in list(self.left):
            while stream in self.left:
                size = min(
                    self.connection.local_flow_control_window(stream), self.connection.max_outbound_frame_size)
                if size == 0:
                    break
                piece, rest = self.left[stream][:size], self.left[stream][size:]
                self.connection.send_data(stream, piece, end_stream=not rest)
                self.left[stream] = rest
                if not rest:
                    del self.left[stream]
                    print("responded", stream, flush=True)

    def flush(self):
        self.transport.write(self.connection.data_to_send())


async def serve():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", int(os.environ.get("PORT", 0)))
    print("port", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def post(port, count):
    # All bodies fit into the connection's first window: a task of httpcore that waits for a larger one reads from the
    # socket even if another task has read the WINDOW_UPDATE meanwhile, and beside a stalled stream nothing more arrives.
    async with httpx.AsyncClient(http1=False, http2=True, timeout=httpx.Timeout(10, read=2)) as client:

        async def one(index):
            await asyncio.sleep(0.05 * index)
            try:
                response = await client.post(f"http://127.0.0.1:{port}/notes/{index}", content=b"x" * 12_000)
                return f"{response.status_code} {len(response.content)}"
            except httpx.HTTPError as error:
                return type(error).__name__

        for index, result in enumerate(await asyncio.gather(*(one(index) for index in range(1, count + 1)))):
            print("result", index + 1, result)


def order():
    with httpx.Client(http1=False, http2=True, timeout=2) as client:
        for _ in range(5):
            try:
                return client.post(os.environ["SLOWLANE_URL"] + "/orders", content=b"milk")
            except httpx.HTTPError:
                time.sleep(0.2)


if sys.argv[1] == "serve":
    asyncio.run(serve())
elif sys.argv[1] == "order":
    order()
else:
    asyncio.run(post(sys.argv[2], int(sys.argv[3])))
