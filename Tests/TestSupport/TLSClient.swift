/// A client of TLS in Python, for what curl cannot do.
public enum TLSClient {
    /// Connects `localhost` at a port. Returns what the script prints.
    ///
    /// - Parameters:
    ///   - authority: The path of the certificate of the trusted authority.
    ///   - action: The name of a function of the script, with its arguments.
    public static func run(port: Int, authority: String, _ action: [String]) throws -> String {
        let (_, output, errors) = try runProgram("python3", ["-c", script, "\(port)", authority] + action)
        return output.isEmpty ? errors : output
    }

    private static let script = #"""
        import os, socket, ssl, struct, sys, time
        port, authority, action, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
        context = ssl.create_default_context(cafile=authority)

        def connect():
            return socket.create_connection(("127.0.0.1", port), timeout=20)

        def reset(sock):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()

        class Memory:
            """TLS whose bytes are sent by hand."""
            def __init__(self, name="localhost"):
                self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
                self.sock = connect()
            def run(self, call, piece=65536):
                while True:
                    try:
                        result, wants = call(), False
                    except ssl.SSLWantReadError:
                        result, wants = None, True
                    data = self.outgoing.read()
                    for start in range(0, len(data), piece):
                        self.sock.sendall(data[start:start + piece])
                        if piece == 1: time.sleep(0.0005)
                    if not wants: return result
                    more = self.sock.recv(65536)
                    if more: self.incoming.write(more)
                    else: self.incoming.write_eof()
            def hello(self):
                try: self.tls.do_handshake()
                except ssl.SSLWantReadError: pass
                return self.outgoing.read()

        def read_all(recv):
            data = b""
            try:
                while True:
                    more = recv()
                    if not more: return f"{data.decode(errors='replace')} closed"
                    data += more
            except Exception as error:
                return f"{data.decode(errors='replace')} {type(error).__name__}"

        def get(path="/"):
            with context.wrap_socket(connect(), server_hostname="localhost", suppress_ragged_eofs=False) as tls:
                tls.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                return read_all(lambda: tls.recv(65536))

        def alpn(*protocols):
            context.set_alpn_protocols(list(protocols))
            try:
                with context.wrap_socket(connect(), server_hostname="localhost") as tls:
                    return str(tls.selected_alpn_protocol())
            except Exception as error:
                return type(error).__name__

        def single_bytes():
            memory = Memory()
            memory.run(memory.tls.do_handshake, piece=1)
            memory.run(lambda: memory.tls.write(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"), piece=1)
            data = b""
            while b"localhost" not in data: data += memory.run(lambda: memory.tls.read(65536))
            return data.decode().split("\r\n\r\n")[1]

        def half_close():
            memory = Memory()
            memory.run(memory.tls.do_handshake)
            memory.run(lambda: memory.tls.write(b"x" * 100000))
            try: memory.tls.unwrap()
            except ssl.SSLWantReadError: pass
            memory.sock.sendall(memory.outgoing.read())
            memory.sock.shutdown(socket.SHUT_WR)
            # The rest is the server's message and its close_notify.
            data = b""
            try:
                while True:
                    more = memory.sock.recv(65536)
                    if not more: break
                    data += more
            except OSError as error:
                return type(error).__name__
            return "closed" if len(data) > 30 else f"closed after {len(data)} bytes"

        def cut_short():
            memory = Memory()
            memory.run(memory.tls.do_handshake)
            memory.run(lambda: memory.tls.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n"))
            memory.sock.shutdown(socket.SHUT_WR)
            return read_all(lambda: memory.sock.recv(65536))[-6:]

        def upgrade():
            with context.wrap_socket(connect(), server_hostname="localhost") as tls:
                tls.sendall(b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
                head = b""
                while b"\r\n\r\n" not in head: head += tls.recv(1)
                tls.sendall(bytes(range(256)) * 400)
                data = b""
                while len(data) < 102400: data += tls.recv(65536)
                return head.decode().split("\r\n")[0] + f" {data == bytes(range(256)) * 400}"

        def resume():
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            session = None
            for _ in range(2):
                with context.wrap_socket(connect(), server_hostname="localhost", session=session) as tls:
                    session, reused = tls.session, tls.session_reused
            return str(reused)

        def hello(name):
            return Memory(name).hello().hex()

        def drop(count, stage):
            for _ in range(int(count)):
                memory = Memory()
                data = memory.hello()
                memory.sock.sendall(data[:100] if stage == "hello" else data)
                if stage == "flight": memory.sock.recv(65536)
                reset(memory.sock)
            return "dropped"

        def close_after_flight():
            memory = Memory()
            memory.sock.sendall(memory.hello())
            data = memory.sock.recv(65536)
            time.sleep(0.05)
            memory.sock.close()
            return "closed" if data[0] == 22 else "?"

        def fuzz(seed, count):
            import random
            random.seed(int(seed))
            for _ in range(int(count)):
                memory = Memory()
                data = bytearray(memory.hello())
                for _ in range(random.randint(1, 8)): data[random.randrange(5, len(data))] = random.randrange(256)
                memory.sock.sendall(data)
                memory.sock.settimeout(0.05)
                try:
                    more = memory.sock.recv(65536)
                    if more: memory.sock.sendall(bytes(random.randrange(256) for _ in range(300)))
                except OSError: pass
                memory.sock.close()
            return "done"

        print(globals()[action](*arguments))
        """#
}
