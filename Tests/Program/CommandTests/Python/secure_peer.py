"""Servers with TLS and their clients, as programs of scenarios.

    secure_peer.py serve CERTIFICATE           a shop with HTTP/1.1 and HTTP/2 on PORT
    secure_peer.py order http1|http2           sends two orders to SLOWLANE_URL, each until there is a response
    secure_peer.py grpc-serve CERTIFICATE KEY  a shop of gRPC on PORT
    secure_peer.py grpc-order naive|keyed      calls it twice, each until there is a response
"""

import concurrent.futures
import os
import pathlib
import sys
import time
import urllib.parse

ORDERS = ("milk", "bread")


def serve(certificate):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[4] / "Integrations/pytest/tests"))
    import secure_server

    secure_server.Shop(certificate, int(os.environ["PORT"])).wait()


def order(version):
    import httpx

    # The certificates are those of SSL_CERT_FILE.
    with httpx.Client(http2=version == "http2", timeout=5, trust_env=True) as client:
        for text in ORDERS:
            for _ in range(5):
                try:
                    response = client.post(os.environ["SLOWLANE_URL"] + "/orders", content=text)
                    print(response.http_version, response.text, file=sys.stderr)
                    break
                except httpx.TransportError as error:
                    print(repr(error), file=sys.stderr)
                    time.sleep(0.2)


def grpc_serve(certificate, key):
    import grpc

    known = {}

    def create(request, context):
        name = dict(context.invocation_metadata()).get("idempotency-key")
        is_replayed = name is not None and name in known
        if not is_replayed:
            known[name] = b"order %d" % (len(known) + 1)
        context.send_initial_metadata((("idempotency-replayed", "true" if is_replayed else "false"),))
        return known[name]

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        "slowlane.Orders", {"Create": grpc.unary_unary_rpc_method_handler(create)}),))
    identity = (pathlib.Path(key).read_bytes(), pathlib.Path(certificate).read_bytes())
    server.add_secure_port("127.0.0.1:" + os.environ["PORT"], grpc.ssl_server_credentials([identity]))
    server.start()
    server.wait_for_termination()


def grpc_order(kind):
    import grpc

    # The certificates are those of GRPC_DEFAULT_SSL_ROOTS_FILE_PATH.
    address = urllib.parse.urlsplit(os.environ["SLOWLANE_URL"]).netloc
    with grpc.secure_channel(address, grpc.ssl_channel_credentials()) as channel:
        create = channel.unary_unary("/slowlane.Orders/Create")
        for number, text in enumerate(ORDERS):
            for _ in range(5):
                try:
                    metadata = (("idempotency-key", "order-%d" % number),) if kind == "keyed" else None
                    print(create(text.encode(), timeout=5, metadata=metadata).decode(), file=sys.stderr)
                    break
                except grpc.RpcError as error:
                    print(error.code().name, file=sys.stderr)
                    time.sleep(0.2)


{"serve": serve, "order": order, "grpc-serve": grpc_serve, "grpc-order": grpc_order}[sys.argv[1]](*sys.argv[2:])
