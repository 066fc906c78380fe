import Foundation

/// An HTTPS server in Node.js with HTTP/1.1 and HTTP/2, and its client. `/size/N` has N bytes; the response to a request with
/// a body is that body; `/posts` has the number of POST so far; other responses say what the server has got.
public final class SecureHTTPServer: Sendable {
    private let process: ChildProcess
    /// The port on 127.0.0.1.
    public let port: Int

    /// Starts a server with a certificate of the test certificates.
    public init(_ certificates: TestCertificates, _ certificate: String = "right") throws {
        process = try ChildProcess(
            "node", ["-e", Self.script, certificates.certificate(certificate), certificates.key(certificate)],
            standardError: .discarded)
        port = try process.readPort()
    }

    deinit {
        process.signal(SIGKILL)
        _ = process.wait()
    }

    private static let script = """
        const fs = require("fs")
        const [cert, key] = process.argv.slice(1).map((path) => fs.readFileSync(path))
        let posts = 0
        const server = require("http2").createSecureServer({ cert, key, allowHTTP1: true }, (request, response) => {
            const parts = []
            request.on("data", (part) => parts.push(part))
            request.on("error", () => {})
            response.on("error", () => {})
            request.on("end", () => {
                if (request.method == "POST") posts += 1
                const size = request.url.match(/^\\/size\\/(\\d+)/)
                const body = size ? Buffer.alloc(+size[1], "x") : Buffer.concat(parts)
                const text = request.url == "/posts" ? `${posts}` : `${request.method} ${request.url} ${request.httpVersion} sni=${request.socket.servername}`
                const bytes = body.length ? body : Buffer.from(text)
                response.writeHead(200, { "content-length": bytes.length })
                response.end(bytes)
            })
        })
        for (const event of ["sessionError", "tlsClientError"]) server.on(event, () => {})
        server.on("upgrade", (request, socket) => {
            socket.on("error", () => {})
            socket.write("HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: echo\\r\\n\\r\\n")
            socket.pipe(socket)
        })
        server.listen(0, "127.0.0.1", () => console.log(server.address().port))
        """

    /// Sends requests to `https://localhost:PORT`, each one with 200 000 bytes of a body on a connection of its own; with
    /// HTTP/2 another request for 300 000 bytes shares the connection. Returns a line for each: the path, the status, the
    /// number of bytes of the response, `ok`, `error` or `timeout`, the milliseconds, and the bytes of the other response.
    ///
    /// - Parameter authority: The certificate of the authority that the client trusts in PEM form.
    public static func ask(
        port: Int, authority: String, isHTTP2: Bool, _ paths: [String]
    ) throws -> [String: (status: Int, bytes: Int, result: String, milliseconds: Int, others: Int)] {
        let version = isHTTP2 ? "h2" : "h1"
        let (_, output, _) = try runProgram("node", ["-e", client, "\(port)", authority, version] + paths)
        var results: [String: (status: Int, bytes: Int, result: String, milliseconds: Int, others: Int)] = [:]
        for line in output.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            guard words.count == 6 else { continue }
            results[words[0]] = (
                Int(words[1]) ?? -1, Int(words[2]) ?? -1, words[3], Int(words[4]) ?? -1, Int(words[5]) ?? -1
            )
        }
        return results
    }

    private static let client = """
        const [port, ca, version, ...paths] = process.argv.slice(1)
        const body = Buffer.alloc(200000, "y"), timeMax = 8000
        function report(path, status, bytes, result, start, others) {
            console.log(path, status, bytes, result, Date.now() - start, others)
        }
        function ask1(path) {
            const start = Date.now(); let status = 0, bytes = 0, done = false
            const end = (result) => {
                if (done) return
                done = true; report(path, status, bytes, result, start, 300000); request.destroy()
            }
            const request = require("https").request(
                { host: "127.0.0.1", servername: "localhost", port, path, method: "POST", ca, agent: false },
                (response) => {
                    status = response.statusCode
                    response.on("data", (part) => { bytes += part.length })
                    response.on("end", () => end("ok")); response.on("error", () => end("error"))
                    response.on("aborted", () => end("error"))
                })
            request.on("error", () => end("error"))
            request.end(body)
            setTimeout(() => end("timeout"), timeMax)
        }
        function ask2(path) {
            const session = require("http2").connect(`https://localhost:${port}`, { ca, host: "127.0.0.1" })
            session.on("error", () => {})
            const start = Date.now(); let status = 0, bytes = 0, others = 0, result = "", left = 2, timer
            const end = () => {
                if (--left > 0) return
                clearTimeout(timer); report(path, status, bytes, result, start, others); session.destroy()
            }
            const other = session.request({ ":path": "/size/300000" })
            other.on("data", (part) => { others += part.length }); other.on("error", () => {})
            other.on("close", end)
            const request = session.request({ ":path": path, ":method": "POST" })
            let size = -1
            request.on("response", (headers) => { status = headers[":status"]; size = headers["content-length"] })
            request.on("data", (part) => { bytes += part.length })
            request.on("end", () => { if (!result) result = size === undefined || bytes == size ? "ok" : "error" })
            request.on("error", () => { result = "error" })
            request.on("aborted", () => { result = "error" })
            request.on("close", () => { if (!result) result = "error"; end() })
            request.end(body)
            timer = setTimeout(() => { result = "timeout"; request.destroy(); other.destroy() }, timeMax)
        }
        for (const path of paths) (version == "h2" ? ask2 : ask1)(path)
        """
}
