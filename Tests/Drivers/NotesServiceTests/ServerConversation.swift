import TestSupport
import Wire

/// What a client sends on one connection.
struct Conversation {
    struct Step {
        var bytes: [UInt8]
        /// Whether the server reads all of it at once.
        var isWhole = false
        /// Whether the client waits for the responses before it goes on.
        var isWaiting = false
    }

    var steps: [Step] = []
    /// Whether the client sends FIN without waiting for responses.
    var isClosedEarly = false

    static let probe = Array("GET /probe HTTP/1.1\r\nHost: probe\r\n\r\n".utf8)

    /// Returns whether a server is between two requests.
    static func canProbe(_ machine: HTTPServerMachine) -> Bool {
        !machine.isHandling && !machine.isClosed && !machine.hasBufferedInput
    }
}

/// A generator of random conversations.
struct ConversationGenerator {
    private var generator: SeededGenerator

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &generator) }
    private mutating func chance(_ percent: Int) -> Bool { number(1...100) <= percent }
    private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(0...elements.count - 1)] }

    private mutating func word(_ length: ClosedRange<Int>) -> String {
        let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789-_")
        return String((0..<number(length)).map { _ in pick(letters) })
    }

    mutating func conversation() -> Conversation {
        var conversation = Conversation()
        conversation.isClosedEarly = chance(20)
        var pending: [UInt8] = []
        for _ in 0..<number(1...6) {
            switch number(1...100) {
            case ...60: pending += valid(allowsExpect: !conversation.isClosedEarly)
            case ...72: pending += mutated(valid(allowsExpect: !conversation.isClosedEarly))
            case ...84: pending += odd()
            case ...88: pending += (0..<number(1...80)).map { _ in UInt8(number(0...255)) }
            default:
                if conversation.isClosedEarly { continue }
                flush(&pending, into: &conversation, isLastWaiting: true)
                conversation.steps += unread()
            }
        }
        // Sometimes the last message is incomplete.
        if chance(15), !pending.isEmpty { pending.removeLast(number(1...pending.count)) }
        flush(&pending, into: &conversation, isLastWaiting: false)
        return conversation
    }

    /// Appends bytes as steps, cut at random places.
    private mutating func flush(_ bytes: inout [UInt8], into conversation: inout Conversation, isLastWaiting: Bool) {
        var rest = bytes[...]
        bytes = []
        let cuts = number(0...5)
        for _ in 0..<cuts where rest.count > 1 {
            let count = chance(50) ? number(1...min(rest.count - 1, 40)) : number(1...rest.count - 1)
            let isWaiting = !conversation.isClosedEarly && chance(30)
            conversation.steps.append(.init(bytes: Array(rest.prefix(count)), isWaiting: isWaiting))
            rest = rest.dropFirst(count)
        }
        conversation.steps.append(.init(bytes: Array(rest), isWaiting: isLastWaiting))
    }

    // MARK: Messages

    private mutating func headers() -> String {
        (0..<number(0...3)).map { _ in
            "X-\(word(1...8)):\(pick([" ", "", "  ", "\t"]))\(pick([word(0...12), "a b", "é", "\u{1F600}x"]))\(pick(["", " "]))\r\n"
        }.joined()
    }

    private mutating func path() -> String {
        let path = pick([
            "/", "/echo", "/echo?q=1", "/204", "/304", "/pieces", "/omitted", "/unknown", "/é%20", "http://other:1/x",
            "http://other?x", "*", "/echo", "/echo",
        ])
        if chance(4) { return pick(["/long", "/fail", "/close"]) }
        return path
    }

    /// A request with a body that the handler reads.
    private mutating func valid(allowsExpect: Bool) -> [UInt8] {
        let method = pick(["GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "x-y"])
        let isOld = chance(12)
        var fields = headers()
        if !isOld || chance(50) {
            fields += "\(pick(["Host", "host", "HOST"])): \(pick(["h", "h:80", "", "[::1]:80"]))\r\n"
        }
        if chance(12) {
            fields += "Connection: \(pick(["close", "Close", "keep-alive", "x, close", "Keep-Alive, x"]))\r\n"
        }
        var body: [UInt8] = []
        if ["POST", "PUT", "x-y"].contains(method) || chance(5) {
            if chance(50) || isOld {
                body = (0..<number(0...pick([5, 300, 6000]))).map { _ in UInt8(number(0...255)) }
                fields += "Content-Length: \(body.count)\r\n"
            } else {
                fields += "Transfer-Encoding: \(pick(["chunked", "Chunked"]))\r\n"
                body = chunks(number(0...4), size: pick([5, 300, 3000]))
            }
            if allowsExpect, chance(15) { fields += "Expect: 100-Continue\r\n" }
        }
        let line = "\(method) \(path()) HTTP/1.\(isOld ? 0 : 1)\r\n"
        return (chance(5) ? [13, 10] : []) + Array((line + fields + "\r\n").utf8) + body
    }

    private mutating func chunks(_ count: Int, size: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<count {
            let chunk = (0..<number(1...size)).map { _ in UInt8(number(0...255)) }
            let digits = String(chunk.count, radix: 16, uppercase: chance(50))
            bytes +=
                Array("\(pick(["", "", "00"]))\(digits)\(pick(["", "", ";x=y", " ;z"]))\r\n".utf8) + chunk + [13, 10]
        }
        return bytes + Array("0\r\n\(chance(20) ? "X-After: \(word(1...5))\r\n" : "")\r\n".utf8)
    }

    /// A request whose body the handler does not read, or not to its end. Whether such a body has arrived when the
    /// response begins decides about the connection, so it arrives at once, or never completely.
    private mutating func unread() -> [Conversation.Step] {
        let expect = chance(30) ? "Expect: 100-continue\r\n" : ""
        func head(_ path: String, _ framing: String) -> [UInt8] {
            Array("POST \(path) HTTP/1.1\r\nHost: h\r\n\(expect)\(framing)\r\n\r\n".utf8)
        }
        let size = number(1...200)
        let body = [UInt8](repeating: 120, count: size)
        switch number(0...6) {
        case 0, 1:
            let path = size <= 10 ? "/unread" : pick(["/unread", "/small"])
            return [.init(bytes: head(path, "Content-Length: \(size)") + body, isWhole: true, isWaiting: true)]
        case 2:
            let arrived = body.prefix(number(0...size - 1))
            return [
                .init(bytes: head("/unread", "Content-Length: \(size)") + arrived, isWhole: true, isWaiting: true),
                .init(bytes: Array(body.dropFirst(arrived.count))),
            ]
        case 3:
            let bytes = head(pick(["/unread", "/echo", "/small"]), "Content-Length: 300000")
            return [.init(bytes: bytes + [UInt8](repeating: 120, count: 300_000))]
        case 4:
            let path = chance(50) ? "/small" : "/unread"
            let bytes = head(path, "Transfer-Encoding: chunked") + Array("b\r\n0123456789a\r\n0\r\n\r\n".utf8)
            return [.init(bytes: bytes, isWhole: true, isWaiting: true)]
        case 5:
            let bytes = head("/echo", "Transfer-Encoding: chunked") + chunks(60, size: 6000)
            return [.init(bytes: bytes)]
        default:
            let bytes = head("/small", "Transfer-Encoding: chunked") + Array("5\r\n01234\r\n0\r\n\r\n".utf8)
            return [.init(bytes: bytes, isWhole: true, isWaiting: true)]
        }
    }

    private mutating func mutated(_ message: [UInt8]) -> [UInt8] {
        var bytes = message
        for _ in 0..<number(1...3) where bytes.count > 1 {
            // Most errors are in the head.
            let index = number(0...min(bytes.count, chance(70) ? 60 : bytes.count) - 1)
            let byte = pick([UInt8(number(0...255)), 13, 10, 32, 9, 0, 58, 44, 48, 57, 127, 128])
            switch number(0...2) {
            case 0: bytes[index] = byte
            case 1: bytes.insert(byte, at: index)
            default: bytes.remove(at: index)
            }
        }
        return bytes
    }

    private mutating func odd() -> [UInt8] {
        let host = "Host: h\r\n"
        let long = String(repeating: "x", count: number(1900...2100))
        let accented = String(repeating: "é", count: number(500...524))
        let texts = [
            "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\(host)\(host)\r\n", "GET / HTTP/1.0\r\n\(host)\(host)\r\n",
            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "GET / HTTP/1.1\r\nHost: é\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: identity\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.0\r\n\(host)Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            "POST / HTTP/1.1\r\n\(host)Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            "POST / HTTP/1.1\r\n\(host)Content-Length: \(pick(["-1", "+1", "0x1", "1, 1", "", "9999999999999999999"]))\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Content-Length: 999999999999999999\r\n\r\nabc",
            "GET / HTTP/2.0\r\n\(host)\r\n", "GET / HTTP/1.2\r\n\(host)\r\n", "GET /\r\n\r\n", "get / http/1.1\r\n\r\n",
            "GET  / HTTP/1.1\r\n\(host)\r\n", "GET / HTTP/1.1 \r\n\(host)\r\n",
            "GET / HTTP/1.1\r\n\(host) folded\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : h\r\n\r\n", "GET / HTTP/1.1\n\(host)\r\n",
            "GET / HTTP/1.1\r\n\(host)X: a\u{0}b\r\n\r\n",
            "GET / HTTP/1.1\r\n\(host)no colon\r\n\r\n", "GET / HTTP/1.1\r\n\(host): empty\r\n\r\n",
            "GET /\(long) HTTP/1.1\r\n\(host)\r\n", "GET / HTTP/1.1\r\n\(host)X: \(long)\(long)\r\n\r\n",
            "GET / HTTP/1.1\r\n\(host)X: \(accented)\r\n\r\n", "GET /\(accented) HTTP/1.1\r\n\(host)\r\n",
            "GET / HTTP/1.1\r\n\(host)" + String(repeating: "X: y\r\n", count: number(97...101)) + "\r\n",
            String(repeating: "\r\n", count: number(3...6)) + "GET / HTTP/1.1\r\n\(host)\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n\(pick(["g", "-1", "", "1 x", "fffffffffffffffff"]))\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n1;\(long)\r\n",
            "CONNECT h:443 HTTP/1.1\r\n\(host)\r\n",
            "GET / HTTP/1.1\r\n\(host)Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}",
            "POST / HTTP/1.1\r\n\(host)Expect: other\r\nContent-Length: 2\r\n\r\nab",
        ]
        return Array(pick(texts).utf8)
    }
}
