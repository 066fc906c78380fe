import Foundation

/// Certificates made with `openssl`, in a temporary folder: an authority, and what it has signed.
public final class TestCertificates: Sendable {
    private let folder: TemporaryFolder

    /// Makes the certificates: `right` (localhost, 127.0.0.1 and api.test), `other` (other.test), `expired`, and `client`;
    /// `stranger` is signed by itself.
    public init() throws {
        folder = try TemporaryFolder()
        let script = """
            set -e
            key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
            openssl req -x509 $key -keyout ca.key -out ca.pem -days 30 -subj /CN=Test-CA
            openssl req -x509 $key -keyout stranger.key -out stranger.pem -days 30 -subj /CN=localhost \
                -addext subjectAltName=DNS:localhost
            leaf() {
                openssl req $key -keyout $1.key -out $1.csr -subj /CN=$1
                echo "subjectAltName=$2" > $1.ext
                openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days $3 -extfile $1.ext -out $1.pem
            }
            # As large as the certificates of public servers.
            others=$(for number in $(seq 40); do printf ',DNS:name-%d.of-this-server.test' $number; done)
            leaf right DNS:localhost,DNS:api.test,IP:127.0.0.1$others 10
            leaf other DNS:other.test 10
            leaf expired DNS:localhost,IP:127.0.0.1 -1
            leaf client DNS:client 10
            """
        let (status, output, _) = try runProgram(
            "/bin/sh", ["-c", script], in: folder.url.path, standardError: .withOutput)
        guard status == 0 else { throw HTTPReplyError(description: "openssl failed: \(output)") }
    }

    /// Returns the path of a certificate: `right` of `right.pem`.
    public func certificate(_ name: String) -> String { folder.path("\(name).pem") }

    /// Returns the path of a private key.
    public func key(_ name: String) -> String { folder.path("\(name).key") }

    /// Returns the bytes of a certificate.
    public func pem(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: certificate(name)))) }

    /// Returns the bytes of a private key.
    public func keyPEM(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: key(name)))) }
}

/// An HTTPS server in Python, which responds with what it has got. Its paths are in the script.
public final class TLSServer: Sendable {
    private let process: ChildProcess
    /// The port on 127.0.0.1.
    public let port: Int

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - certificate: The name of its certificate among the test certificates.
    ///   - clientsNeed: The name of the authority that must have signed the certificate of clients; `nil` for none.
    ///   - version: The version of TLS, `TLSv1_2` or `TLSv1_3`.
    public init(
        _ certificates: TestCertificates, _ certificate: String = "right", clientsNeed: String? = nil,
        version: String = "TLSv1_3"
    ) throws {
        process = try ChildProcess(
            "python3",
            [
                "-c", Self.script, certificates.certificate(certificate), certificates.key(certificate), version,
                clientsNeed.map { certificates.certificate($0) } ?? "",
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
        context.minimum_version = context.maximum_version = ssl.TLSVersion[sys.argv[3]]
        context.set_alpn_protocols(["h2", "http/1.1"])
        if sys.argv[4]:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(sys.argv[4])
        names = threading.local()
        def note(sock, name, context): names.sni = name
        context.sni_callback = note

        def serve(raw):
            names.sni = None
            tls = context.wrap_socket(raw, server_side=True)
            data = b""
            while True:
                while b"\\r\\n\\r\\n" not in data:
                    more = tls.recv(65536)
                    if not more:
                        if data:
                            tls.sendall(f"{len(data)} bytes".encode())
                        tls.unwrap()
                        return
                    data += more
                head, data = data.split(b"\\r\\n\\r\\n", 1)
                lines = head.decode().split("\\r\\n")
                fields = {l.split(":", 1)[0].lower(): l.split(":", 1)[1].strip() for l in lines[1:]}
                size = int(fields.get("content-length", "0"))
                while len(data) < size:
                    data += tls.recv(65536)
                body, data = data[:size], data[size:]
                method, path, _ = lines[0].split(" ")
                host = fields.get("host", "")
                extra = ""
                text = body if size else (
                    f"{method} {path} host={host} sni={names.sni} alpn={tls.selected_alpn_protocol()}".encode())
                if path == "/redirect":
                    extra = f"Location: https://{host}/next\\r\\nSet-Cookie: id=1; Domain=localhost; Secure; Path=/\\r\\n"
                length = f"Content-Length: {len(text)}\\r\\n"
                if path == "/shutdown" or path == "/truncated-stream":
                    length = ""
                if path == "/truncated":
                    length = "Content-Length: 1000\\r\\n"
                status = "302 Found" if path == "/redirect" else "200 OK"
                tls.sendall(f"HTTP/1.1 {status}\\r\\n{extra}{length}\\r\\n".encode() + text)
                if path == "/shutdown":
                    tls.unwrap()
                    raw.close()
                    return
                if path in ("/truncated", "/truncated-stream", "/close"):
                    # A FIN without close_notify.
                    tls.close()
                    return

        def safely(raw):
            try:
                serve(raw)
            except (OSError, ValueError):
                raw.close()

        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=safely, args=(connection,), daemon=True).start()
        """
}

extension ChildProcess {
    /// Returns the port that a server prints on its first line. Throws if it prints none.
    func readPort() throws -> Int {
        var line: [UInt8] = []
        while let byte = try output.read(upToCount: 1)?.first, byte != 10 { line.append(byte) }
        guard let port = Int(String(decoding: line, as: UTF8.self)) else {
            throw HTTPReplyError(description: "the server did not start")
        }
        return port
    }
}
