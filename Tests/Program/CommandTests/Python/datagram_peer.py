"""Real peers of a proxy of datagrams: a server and clients of DNS (dnspython), and of HTTP/3 (aioquic).

datagram_peer.py dns-server            prints its port; the name 'large.test' has more text than fits into a datagram
datagram_peer.py dns PORT NAME TIMEOUT prints as JSON: the answer, the seconds, whether TCP was used
datagram_peer.py h3-server CERT KEY    prints its port; /N is a body of N bytes
datagram_peer.py h3 PORT CA PATH       prints as JSON: the status, the bytes, the seconds, the digest; or the error
"""

import asyncio
import hashlib
import json
import socket
import struct
import sys
import threading
import time


def dns_response(query, over_tcp):
    import dns.flags
    import dns.message
    import dns.rrset

    request = dns.message.from_wire(query)
    response = dns.message.make_response(request)
    name = request.question[0].name
    if str(name) == "large.test.":
        if over_tcp:
            texts = ['"' + "x" * 200 + f'{number:04}"' for number in range(40)]
            response.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", *texts))
        else:
            response.flags |= dns.flags.TC
    else:
        response.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", '"hello"'))
    return response.to_wire(max_size=65535)


def dns_server():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", port))
    print(port, flush=True)

    def serve_tcp():
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as reader:
                (length,) = struct.unpack("!H", reader.read(2))
                response = dns_response(reader.read(length), True)
                connection.sendall(struct.pack("!H", len(response)) + response)

    threading.Thread(target=serve_tcp, daemon=True).start()
    while True:
        query, client = datagrams.recvfrom(65536)
        datagrams.sendto(dns_response(query, False), client)


def dns_client(port, name, timeout):
    import dns.resolver

    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers = ["127.0.0.1"]
    resolver.port = int(port)
    resolver.timeout = float(timeout)
    resolver.lifetime = 30
    start = time.monotonic()
    try:
        answer = resolver.resolve(name, "TXT")
        texts = [text.decode() for record in answer for text in record.strings]
        result = {"texts": len(texts), "first": texts[0]}
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}"}
    result["seconds"] = time.monotonic() - start
    print(json.dumps(result), flush=True)


def body(count):
    return bytes(index * 31 % 251 for index in range(251)) * (count // 251 + 1)


async def h3_server(certificate, key):
    from aioquic.asyncio import QuicConnectionProtocol, serve
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.events import ProtocolNegotiated

    class Server(QuicConnectionProtocol):
        http = None

        def quic_event_received(self, event):
            if isinstance(event, ProtocolNegotiated):
                self.http = H3Connection(self._quic)
            if self.http is None:
                return
            for http_event in self.http.handle_event(event):
                if isinstance(http_event, HeadersReceived):
                    path = dict(http_event.headers)[b":path"]
                    count = int(path[1:])
                    headers = [(b":status", b"200"), (b"content-length", str(count).encode())]
                    self.http.send_headers(http_event.stream_id, headers)
                    self.http.send_data(http_event.stream_id, body(count)[:count], end_stream=True)
            self.transmit()

    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(certificate, key)
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
    probe.close()
    await serve("127.0.0.1", port, configuration=configuration, create_protocol=Server)
    print(port, flush=True)
    await asyncio.Event().wait()


async def h3_client(port, authority, path):
    from aioquic.asyncio import QuicConnectionProtocol, connect
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DataReceived, HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration

    class Client(QuicConnectionProtocol):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.http = H3Connection(self._quic)
            self.status, self.data = None, b""
            self.done = asyncio.get_running_loop().create_future()

        def quic_event_received(self, event):
            for http_event in self.http.handle_event(event):
                if isinstance(http_event, HeadersReceived):
                    self.status = int(dict(http_event.headers)[b":status"])
                if isinstance(http_event, DataReceived):
                    self.data += http_event.data
                if getattr(http_event, "stream_ended", False) and not self.done.done():
                    self.done.set_result(None)

        async def get(self, path):
            stream = self._quic.get_next_available_stream_id()
            headers = [
                (b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", path.encode()),
            ]
            self.http.send_headers(stream, headers, end_stream=True)
            self.transmit()
            await self.done

    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="localhost")
    configuration.load_verify_locations(authority)
    start = time.monotonic()
    try:
        async with asyncio.timeout(60):
            async with connect("127.0.0.1", int(port), configuration=configuration, create_protocol=Client) as client:
                await client.get(path)
                result = {
                    "status": client.status, "bytes": len(client.data),
                    "sha256": hashlib.sha256(client.data).hexdigest(),
                    "seconds": time.monotonic() - start,
                }
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}", "seconds": time.monotonic() - start}
    print(json.dumps(result), flush=True)


def main(command, *arguments):
    if command == "dns-server":
        dns_server()
    elif command == "dns":
        dns_client(*arguments)
    elif command == "h3-server":
        asyncio.run(h3_server(*arguments))
    elif command == "h3":
        asyncio.run(h3_client(*arguments))


main(*sys.argv[1:])
