import TestSupport

/// A random conversation of an HTTP client with a server, as bytes: pipelining, bodies of all framings, interim and
/// early responses, protocol switches, a request or response that ends with the connection.
struct ConversationPlan {
    /// What an observer of the bytes must find.
    struct Exchange: Equatable, CustomStringConvertible {
        var method: String
        /// Bytes of the request's body; `nil` if the request is not complete.
        var requestBody: Int?
        var status: Int?
        /// Bytes of the response's body; `nil` if the response is not complete.
        var responseBody: Int?

        var description: String {
            "\(method) \(requestBody.map(String.init) ?? "-") \(status ?? 0) \(responseBody.map(String.init) ?? "-")"
        }
    }

    var generator: SeededGenerator
    private(set) var exchanges: [Exchange] = []
    private(set) var up: [UInt8] = []
    private(set) var down: [UInt8] = []
    /// For each part of ``down``: its end, and the number of bytes of ``up`` that precede its first byte.
    private(set) var causes: [(end: Int, cause: Int)] = []
    /// The lengths of both streams before a protocol switch.
    private(set) var opaqueFrom: (up: Int, down: Int)?
    private(set) var closes = false

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        let count = Int.random(in: 1...6, using: &generator)
        for index in 0..<count where opaqueFrom == nil && !closes { add(isLast: index == count - 1) }
    }

    mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &generator) }

    private mutating func oneIn(_ count: Int) -> Bool { number(1...count) == 1 }

    /// Returns a body with the header fields that frame it, and its length.
    private mutating func body(_ framing: Int) -> (fields: String, bytes: [UInt8], count: Int) {
        func random(_ count: Int, _ generator: inout SeededGenerator) -> [UInt8] {
            (0..<count).map { _ in .random(in: 0...255, using: &generator) }
        }
        switch framing {
        case 0: return ("", [], 0)
        case 1:
            let bytes = random(number(0...[20, 400, 5000][number(0...2)]), &generator)
            return ("Content-Length: \(bytes.count)\r\n", bytes, bytes.count)
        default:
            var (bytes, count): ([UInt8], Int) = ([], 0)
            for _ in 0..<number(0...5) {
                let chunk = random(number(1...[2, 30, 700][number(0...2)]), &generator)
                let size = String(chunk.count, radix: 16, uppercase: number(0...1) == 0)
                bytes += Array("\(size)\(oneIn(5) ? ";a=b" : "")\r\n".utf8) + chunk + [13, 10]
                count += chunk.count
            }
            let trailer = oneIn(4) ? "X-After: yes\r\n" : ""
            return ("Transfer-Encoding: chunked\r\n", bytes + Array("0\r\n\(trailer)\r\n".utf8), count)
        }
    }

    private mutating func padding() -> String {
        (0..<number(0...3)).map { "X-\($0): \(String(repeating: "v", count: number(0...20)))\r\n" }.joined()
    }

    private mutating func send(_ bytes: [UInt8], after cause: Int) {
        down += bytes
        causes.append((down.count, cause))
    }

    private mutating func add(isLast: Bool) {
        if oneIn(12) { return addSwitch() }
        let method = ["GET", "PUT", "POST", "DELETE", "HEAD"][number(0...4)]
        let isBodiless = ["GET", "HEAD", "DELETE"].contains(method)
        let request = body(isBodiless ? 0 : number(0...2))
        let expects = !isBodiless && oneIn(4) ? "Expect: 100-continue\r\n" : ""
        if oneIn(10) { up += [13, 10] }
        up += Array("\(method) /notes HTTP/1.1\r\nHost: h\r\n\(padding())\(expects)\(request.fields)\r\n".utf8)
        let headEnd = up.count
        up += request.bytes
        let end = up.count
        // The response may begin before the end of its request, which may then never come.
        let isEarly = request.bytes.count > 1 && oneIn(4)
        let cause = isEarly ? headEnd + number(0...request.bytes.count - 1) : end
        for _ in 0..<(oneIn(3) ? number(1...2) : 0) {
            let interim = oneIn(2) ? "100 Continue" : "103 Early Hints\r\nLink: </a.css>; rel=preload"
            send(Array("HTTP/1.1 \(interim)\r\n\r\n".utf8), after: headEnd)
        }
        let status = isEarly ? 413 : [200, 201, 204, 304, 404, 500][number(0...5)]
        var response = body(number(1...2))
        if status == 204 || status == 304 { response = ("", [], 0) }
        if method == "HEAD" { response = ("Content-Length: 70\r\n", [], 0) }
        let lastsUntilClose = isLast && method != "HEAD" && status != 204 && status != 304 && oneIn(3)
        let version = lastsUntilClose && oneIn(2) ? "HTTP/1.0" : "HTTP/1.1"
        if lastsUntilClose {
            response.bytes = [UInt8](repeating: 7, count: number(0...900))
            response = ("Connection: close\r\n", response.bytes, response.bytes.count)
            closes = true
        }
        let head = Array("\(version) \(status) X\r\n\(padding())\(response.fields)\r\n".utf8)
        var exchange = Exchange(
            method: method, requestBody: request.count, status: status, responseBody: response.count)
        if isLast && !isEarly && response.bytes.count > 1 && !lastsUntilClose && oneIn(6) {
            // A response that the server does not complete.
            response.bytes.removeLast()
            exchange.responseBody = nil
            closes = true
        }
        if isLast && isEarly && oneIn(2) {
            up.removeLast(end - cause)
            exchange.requestBody = nil
        }
        send(head + response.bytes, after: cause)
        exchanges.append(exchange)
    }

    /// A CONNECT or an upgrade, which the server may decline.
    private mutating func addSwitch() {
        let isConnect = oneIn(2)
        let start =
            isConnect
            ? "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n"
            : "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        up += Array(start.utf8)
        let isAgreed = oneIn(2)
        let status = isAgreed ? (isConnect ? 200 : 101) : 403
        let agreed = isConnect ? "" : "Connection: Upgrade\r\nUpgrade: websocket\r\n"
        send(
            Array("HTTP/1.1 \(status) X\r\n\(isAgreed ? agreed : "Content-Length: 3\r\n")\r\n".utf8)
                + (isAgreed ? [] : [1, 2, 3]), after: up.count)
        exchanges.append(
            Exchange(
                method: isConnect ? "CONNECT" : "GET", requestBody: 0, status: status,
                responseBody: isAgreed ? 0 : 3))
        if !isAgreed { return }
        opaqueFrom = (up.count, down.count)
        // Bytes that look like HTTP are not.
        up += Array("GET /tunnel HTTP/1.1\r\nHost: x\r\n\r\n".utf8) + [0, 1, 2]
        send(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8) + [3, 4], after: opaqueFrom?.up ?? 0)
    }

    /// Returns the number of bytes of ``down`` that may have been sent when a number of bytes of ``up`` have.
    func downAvailable(after sent: Int) -> Int {
        var available = 0
        for part in causes {
            if part.cause > sent { break }
            available = part.end
        }
        return available
    }
}
