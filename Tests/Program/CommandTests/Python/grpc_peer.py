"""A server of gRPC that keeps orders, and clients of it, by the package grpcio.

    grpc_peer.py serve                prints its port, then a line per executed call
    grpc_peer.py naive PORT           creates five orders, and repeats a call that fails as it is
    grpc_peer.py keyed PORT           the same with a key per order, by which the server recognises a repeated call
    grpc_peer.py upload PORT          sends 200 messages and END in one call (client streaming), and prints its status
    grpc_peer.py list PORT            reads 50 orders of one call (server streaming), and prints their number and the status
"""

import concurrent.futures
import sys
import time

import grpc

SERVICE = "slowlane.Orders"
#: The last message of an upload.
END = b"end"


def serve():
    # Without probes of the bandwidth, the windows are those of RFC 9113: SETTINGS do not enlarge them.
    known = {}

    def create(request, context):
        key = dict(context.invocation_metadata()).get("idempotency-key")
        if key is None or key not in known:
            known[key] = True
            print("created", request.decode(), flush=True)
        return b"created"

    def upload(messages, context):
        count, last = 0, None
        try:
            for message in messages:
                count, last = count + len(message), message
        except grpc.RpcError:
            pass
        # The messages of an aborted call may simply end, before the context knows it.
        print("uploaded", count) if last == END else print("aborted upload")
        sys.stdout.flush()
        return b"%d" % count

    def listing(request, context):
        for number in range(50):
            yield b"order %d" % number
        print("listed", flush=True)

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), options=[
        ("grpc.so_reuseport", 0), ("grpc.http2.bdp_probe", 0)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {
        "Create": grpc.unary_unary_rpc_method_handler(create), "Upload": grpc.stream_unary_rpc_method_handler(upload),
        "List": grpc.unary_stream_rpc_method_handler(listing)}),))
    print("port", server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


def order(channel, has_keys):
    create = channel.unary_unary("/%s/Create" % SERVICE)
    for number in range(1, 6):
        for attempt in range(3):
            try:
                create(b"order %d" % number, timeout=2, metadata=(("idempotency-key", str(number)),) if has_keys else None)
                print("order", number, "attempts", attempt + 1)
                break
            except grpc.RpcError as error:
                print("order", number, error.code().name)


def upload(channel):
    def messages():
        for _ in range(200):
            yield b"m" * 1000
            time.sleep(0.002)
        yield END

    try:
        print("result", channel.stream_unary("/%s/Upload" % SERVICE)(messages(), timeout=10).decode())
    except grpc.RpcError as error:
        print("result", error.code().name)


def listing(channel):
    count = 0
    try:
        for _ in channel.unary_stream("/%s/List" % SERVICE)(b"", timeout=3):
            count += 1
        print("result", count, "OK")
    except grpc.RpcError as error:
        print("result", count, error.code().name)


if sys.argv[1] == "serve":
    serve()
else:
    with grpc.insecure_channel("127.0.0.1:%s" % sys.argv[2]) as connected:
        if sys.argv[1] == "upload":
            upload(connected)
        elif sys.argv[1] == "list":
            listing(connected)
        else:
            order(connected, sys.argv[1] == "keyed")
