import Foundation

/// A server with TLS in Python that passes the plain bytes to and from another port, as a reverse proxy does.
public final class TLSRelay: Sendable {
    private let process: ChildProcess
    /// The port on 127.0.0.1.
    public let port: Int

    /// Starts a relay.
    ///
    /// - Parameters:
    ///   - target: The port of the server without TLS on 127.0.0.1; `nil` for a response without a length to each request, whose
    ///     end is that of the connection.
    ///   - sendsCloseNotify: Whether the end of a connection is announced by close_notify.
    public init(
        _ certificates: TestCertificates, _ certificate: String = "right", to target: Int?,
        sendsCloseNotify: Bool = true
    ) throws {
        process = try ChildProcess(
            "python3",
            [
                "-c", Self.script, certificates.certificate(certificate), certificates.key(certificate),
                "\(target ?? 0)", sendsCloseNotify ? "1" : "",
            ], standardError: .discarded)
        port = try process.readPort()
    }

    deinit {
        process.signal(SIGKILL)
        _ = process.wait()
    }

    private static let script = """
        import socket, ssl, sys, threading
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        target, announces = int(sys.argv[3]), sys.argv[4]

        def copy(source, destination):
            try:
                while data := source.recv(65536):
                    destination.sendall(data)
                destination.shutdown(socket.SHUT_WR) if destination.family and not isinstance(
                    destination, ssl.SSLSocket) else destination.unwrap()
            except OSError:
                pass

        def serve(raw):
            try:
                tls = context.wrap_socket(raw, server_side=True)
                if target:
                    plain = socket.create_connection(("127.0.0.1", target))
                    thread = threading.Thread(target=copy, args=(plain, tls), daemon=True)
                    thread.start()
                    copy(tls, plain)
                    thread.join()
                else:
                    tls.recv(65536)
                    tls.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\n\\r\\n[]")
                    if announces:
                        tls.unwrap()
                tls.close()
            except OSError:
                raw.close()

        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
        """
}
