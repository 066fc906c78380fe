import HTTPTypes
import NIOCore
import TestSupport
import Testing

@testable import Wire

@Suite struct HTTPParserTests {
    private func parts(_ side: HTTPParser.Side, _ text: String, methods: [String] = [], ended: Bool = false) throws
        -> [String]
    {
        var parser = HTTPParser(side)
        for method in methods { parser.requestSent(method: method) }
        parser.received(ByteBuffer(string: text))
        if ended { parser.streamEnded() }
        var found: [String] = []
        while let part = try parser.takePart() {
            switch part {
            case .requestHead(let head, let range): found.append("\(head.method) \(head.target) \(range)")
            case .responseHead(let head, let range, let isInterim):
                found.append("\(head.status)\(isInterim ? "i" : "") \(range)")
            case .body(let bytes, let range): found.append("body \(bytes.readableBytes) \(range)")
            case .trailers(let headers, let range): found.append("trailers \(headers.count) \(range)")
            case .end(let offset): found.append("end \(offset)")
            case .opaque(let bytes, let range): found.append("opaque \(bytes.readableBytes) \(range)")
            }
        }
        return found
    }

    @Test func offsetsAreExact() throws {
        #expect(
            try parts(.requests, "PUT /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n") == [
                "PUT /a 0..<38", "body 3 38..<41", "end 41", "GET / 41..<59", "end 59",
            ])
        #expect(
            try parts(.requests, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n")
                == [
                    "POST / 0..<47", "body 3 50..<53", "trailers 1 58..<66", "end 66",
                ])
    }

    @Test func responsesWithoutBodyHaveNone() throws {
        let responses =
            "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 204 N\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 O\r\nContent-Length: 5\r\n\r\n"
            + "HTTP/1.1 304 N\r\n\r\n"
        #expect(
            try parts(.responses, responses, methods: ["PUT", "HEAD", "GET"]) == [
                "100i 0..<18", "204 18..<55", "end 55", "200 55..<92", "end 92", "304 92..<110", "end 110",
            ])
    }

    @Test func aResponseMayLastUntilTheClose() throws {
        let text = "HTTP/1.0 200 OK\r\n\r\nall of it"
        #expect(try parts(.responses, text, methods: ["GET"]) == ["200 0..<19", "body 9 19..<28"])
        #expect(try parts(.responses, text, methods: ["GET"], ended: true).last == "end 28")
    }

    @Test func anUpgradeMakesTheRestOpaque() throws {
        #expect(
            try parts(.responses, "HTTP/1.1 101 S\r\n\r\n\u{1}\u{2}", methods: ["GET"]) == [
                "101 0..<18", "opaque 2 18..<20",
            ])
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\nHost: h\n\n", HTTPError.badLineEnd), ("GET  / HTTP/1.1\r\n\r\n", .badStartLine),
        ("GET / HTTP/2.0\r\n\r\n", .badVersion), ("G\0T / HTTP/1.1\r\n\r\n", .badStartLine),
        ("GET / HTTP/1.1\r\nA : b\r\n\r\n", .badHeader), ("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", .badHeader),
        ("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", .badHeader), ("GET / HTTP/1.1\r\nnothing\r\n\r\n", .badHeader),
        ("PUT / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", .badLength),
        ("PUT / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", .badLength),
        ("PUT / HTTP/1.1\r\nContent-Length: +3\r\n\r\n", .badLength),
        ("PUT / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", .badLength),
        ("PUT / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", .unknownCoding),
        ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", .badChunk),
        ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcde", .badChunk),
        ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", .badChunk),
        ("\r\n\r\n\r\n\r\n\r\n", .badStartLine),
    ]) func ambiguousMessagesAreRefused(_ text: String, _ error: HTTPError) {
        #expect(throws: error) { try parts(.requests, text) }
    }

    @Test(arguments: [
        ("HTTP/2 200 OK\r\n\r\n", HTTPError.badVersion), ("HTTP/2.0 200 OK\r\n\r\n", .badVersion),
        ("HTTP/1.2 200 OK\r\n\r\n", .badVersion), ("HTTP/1.1 20 OK\r\n\r\n", .badStartLine),
        ("HTTP/1.1\r\n\r\n", .badStartLine), ("ICY 200 OK\r\n\r\n", .badStartLine),
        ("<html>\r\n\r\n", .badStartLine),
    ]) func malformedStatusLinesAreRejectedWithTheirCause(_ text: String, _ error: HTTPError) {
        #expect(throws: error) { try parts(.responses, text, methods: ["GET"]) }
    }

    @Test func partsBeyondTheirLimitsAreRefused() {
        let long = String(repeating: "x", count: 100_000)
        #expect(throws: HTTPError.tooLarge("the head")) { try parts(.requests, "GET /\(long)") }
        #expect(throws: HTTPError.tooLarge("the start line")) {
            try parts(.requests, "GET /\(long.prefix(9000)) HTTP/1.1\r\n\r\n")
        }
        let many = String(repeating: "A: b\r\n", count: 201)
        #expect(throws: HTTPError.tooLarge("the number of headers")) {
            try parts(.requests, "GET / HTTP/1.1\r\n\(many)\r\n")
        }
        #expect(throws: HTTPError.tooLarge("a chunk's size line")) {
            try parts(.requests, "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;\(long.prefix(300))\r\n")
        }
    }

    /// Each input ends inside the next chunk's size line, so that the buffer is never empty.
    @Test func aLongChunkedBodyKeepsAFewBytesAndItsOffsets() throws {
        var parser = HTTPParser(.requests)
        let head = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        parser.received(ByteBuffer(string: head + "3"))
        let rest = "e8\r\n" + String(repeating: "x", count: 1000) + "\r\n3"
        for number in 0..<2000 {
            parser.received(ByteBuffer(string: rest))
            while let part = try parser.takePart() {
                guard case .body(_, let range) = part else { continue }
                let start = Int64(head.utf8.count + number * rest.utf8.count + 5)
                #expect(range == start..<start + 1000)
            }
            #expect(parser.bytesKept == 1)
        }
        let buffer = try #require(Mirror(reflecting: parser).descendant("buffer") as? ByteBuffer)
        #expect(buffer.capacity <= 128 << 10)
    }

    @Test func chunksMayBeShortButNotMostlyFraming() throws {
        let head = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        let short = String(repeating: "1\r\nx\r\n", count: 50_000)
        #expect(try parts(.requests, head + short + "0\r\n\r\n").last?.hasPrefix("end") == true)
        let framed = String(repeating: "1;\(String(repeating: "e", count: 200))\r\nx\r\n", count: 1000)
        #expect(throws: HTTPError.badChunk) { try parts(.requests, head + framed + "0\r\n\r\n") }
    }

    @Test func anEarlyEndOfTheStreamIsAnError() {
        for text in [
            "HTTP/1.1 200 O", "HTTP/1.1 200 O\r\nContent-Length: 5\r\n\r\nab",
            "HTTP/1.1 200 O\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ] {
            #expect(throws: HTTPError.endedEarly) { try parts(.responses, text, methods: ["GET"], ended: true) }
        }
    }

    @Test(arguments: 0..<200) func piecesDoNotChangeTheResult(seed: UInt64) throws {
        var writer = ConversationWriter(generator: SeededGenerator(seed: seed))
        var bytes: [UInt8] = []
        for _ in 0..<writer.number(1...4) { bytes += writer.request(["GET", "PUT", "POST"][writer.number(0...2)]) }
        var whole = HTTPParser(.requests)
        whole.received(ByteBuffer(bytes: bytes))
        let expected = try whole.messages()
        var single = HTTPParser(.requests)
        var found: [Message] = []
        for byte in bytes {
            single.received(ByteBuffer(bytes: [byte]))
            while let part = try single.takePart() {
                switch part {
                case .requestHead(let head, _):
                    found.append(
                        Message(
                            first: "\(head.method) \(head.target) \(head.version)",
                            headers: head.fields.map { "\($0.name): \($0.value)" }))
                case .body(let bytes, _): found[found.count - 1].body += Array(bytes.readableBytesView)
                case .trailers(let headers, _):
                    found[found.count - 1].trailers = headers.map { "\($0.name): \($0.value)" }
                case .end(let offset):
                    found[found.count - 1].isWhole = true
                    #expect(offset <= bytes.count)
                case .responseHead, .opaque: break
                }
            }
        }
        #expect(found == expected, "seed \(seed)")
        #expect(expected.allSatisfy { $0.isWhole }, "seed \(seed)")
    }

    /// Random bytes, and valid messages with a few changed bytes: the result is an error or messages, never more bytes than the input.
    @Test(arguments: randomSeeds(20)) func randomBytesEndInAnErrorOrInMessages(seed: UInt64) {
        var writer = ConversationWriter(generator: SeededGenerator(seed: seed))
        for _ in 0..<250 {
            let isResponse = writer.number(0...1) == 0
            var bytes =
                writer.number(0...3) == 0
                ? writer.body(writer.number(1...400)) : isResponse ? writer.response(to: "GET") : writer.request("POST")
            for _ in 0..<writer.number(0...3) where !bytes.isEmpty {
                bytes[writer.number(0...bytes.count - 1)] = UInt8(writer.number(0...255))
            }
            var parser = HTTPParser(isResponse ? .responses : .requests)
            for _ in 0..<3 { parser.requestSent(method: "GET") }
            var bodies = 0
            do {
                for piece in writer.pieces(bytes) {
                    parser.received(piece)
                    while let part = try parser.takePart() {
                        if case .body(let bytes, _) = part { bodies += bytes.readableBytes }
                    }
                }
            } catch {
                #expect(throws: error) { () throws -> Void in _ = try parser.takePart() }
            }
            #expect(bodies <= bytes.count)
        }
    }

    @Test func headsAreSerialisedAndInjectionIsRefused() throws {
        let fields = [(name: "A", value: "b")]
        var buffer = ByteBuffer()
        try HTTPRequestHead(method: "PUT", target: "/x", fields: fields).write(into: &buffer)
        try HTTPResponseHead(status: 204, reason: "No Content", fields: fields).write(into: &buffer)
        #expect(String(buffer: buffer) == "PUT /x HTTP/1.1\r\nA: b\r\n\r\nHTTP/1.1 204 No Content\r\nA: b\r\n\r\n")
        #expect(throws: HTTPError.unwritable("header value")) {
            try HTTPRequestHead(method: "GET", target: "/", fields: [("C", "d\r\nEvil: yes")])
        }
        #expect(throws: HTTPError.unwritable("header name")) {
            try HTTPRequestHead(method: "GET", target: "/", fields: [("C:", "d")])
        }
        #expect(throws: HTTPError.unwritable("target")) {
            try HTTPRequestHead(method: "GET", target: "/ HTTP/1.1\r\n")
        }
        #expect(throws: HTTPError.unwritable("method")) { try HTTPRequestHead(method: "G T", target: "/") }
        #expect(throws: HTTPError.unwritable("reason")) { try HTTPResponseHead(status: 200, reason: "a\r\nb") }
        #expect(throws: HTTPError.unwritable("status")) { try HTTPResponseHead(status: 20) }
    }

    /// Names keep their case, and values and reasons their bytes (obs-text), in order and with repetitions.
    @Test func aParsedHeadIsSerialisedToTheSameBytes() throws {
        let request =
            Array("PUT http://a/b?c HTTP/1.0\r\nHOST: a\r\nx-B: \u{E4}".utf8) + [0xFF, 0x80]
            + Array("\r\nHost: b\r\nCookie: a=b\r\nCookie: c=d\r\nEmpty: \r\n\r\n".utf8)
        var requests = HTTPParser(.requests)
        requests.received(ByteBuffer(bytes: request))
        guard case .requestHead(let head, _)? = try requests.takePart() else { throw HTTPError.badStartLine }
        #expect(head.hosts == ["a", "b"] && head.value(of: "host") == "a" && head.value(of: "Missing") == nil)
        var buffer = ByteBuffer()
        head.write(into: &buffer)
        #expect(Array(buffer.readableBytesView) == request)

        let response = Array("HTTP/1.1 299 \u{E4}".utf8) + [0xFF] + Array("\r\nContent-Length: 0\r\n\r\n".utf8)
        var responses = HTTPParser(.responses)
        responses.requestSent(method: "GET")
        responses.received(ByteBuffer(bytes: response))
        guard case .responseHead(let answer, _, _)? = try responses.takePart() else { throw HTTPError.badStartLine }
        buffer.clear()
        answer.write(into: &buffer)
        #expect(Array(buffer.readableBytesView) == response)
    }
    /// Bytes of another protocol are recognised before the end of a head, byte by byte; an incomplete head is not.
    @Test func anIncompleteHeadIsCheckedByItsStartLine() throws {
        for (side, text, error) in [
            (HTTPParser.Side.requests, "\u{16}", HTTPError.badStartLine),
            (.requests, "EHLO example\r\n", .badStartLine),
            (.requests, " GET", .badStartLine), (.requests, "GET / HTTP/1.1\r\n", nil), (.requests, "GE", nil),
            (.requests, "\r", nil), (.requests, "\r\nGET / HTTP/2.0\r\n", nil),
            (.requests, String(repeating: "M", count: 100), nil), (.responses, "HTT", nil),
            (.responses, "220 smtp", .badStartLine), (.responses, "HTTP/1.1 200 OK\r\nA: b", nil),
            (.responses, "HTTPS 1.1 200 OK\r\n", .badStartLine),
        ] as [(HTTPParser.Side, String, HTTPError?)] {
            for size in [1, 100] {
                var parser = HTTPParser(side, checksIncompleteHeads: true)
                if side == .responses { parser.requestSent(method: "GET") }
                var found: HTTPError?
                let bytes = Array(text.utf8)
                for start in stride(from: 0, to: bytes.count, by: size) {
                    parser.received(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
                    do throws(HTTPError) { #expect(try parser.takePart() == nil) } catch { found = error }
                }
                #expect(found == error, "\(text)")
            }
        }
    }
}
