import Determinism
import HTTPTypes
import NIOCore
import TestSupport
import Testing

@testable import HTTPWire

/// The server side of one connection, in virtual time.
@Suite struct HTTPServerMachineTests {
    /// A driver that records the machine's actions as text. It accepts all writes at once, unless it is stalled.
    private final class Driver {
        var machine: HTTPServerMachine
        var now = Instant.start
        var log: [String] = []
        var output = ""
        var isStalled = false
        var bytesHeld = 0
        /// The number of body bytes after which the driver fails a body.
        var budget = Int.max

        init(
            defaultHeaders: HTTPFields = [:], unixTime: Int64? = nil,
            _ change: (inout HTTPServerLimits) -> Void = { _ in }
        ) {
            var limits = HTTPServerLimits()
            change(&limits)
            machine = HTTPServerMachine(limits: limits, defaultHeaders: defaultHeaders, at: .start)
            machine.unixTime = unixTime
        }

        func feed(_ body: (inout HTTPServerMachine) -> Void) {
            body(&machine)
            drain()
        }

        private func drain() {
            while let action = machine.takeAction() {
                switch action {
                case .request(let request):
                    log.append("\(request.request.method) \(request.request.path ?? "")")
                case .bodyGrew(let count):
                    budget -= count
                    if budget < 0 { machine.failBody(.budgetExceeded, at: now) }
                case .body(.success(let bytes)): log.append("body \(String(decoding: bytes, as: UTF8.self))")
                case .body(.failure(let error)): log.append("no body: \(error)")
                case .write(let bytes):
                    output += String(buffer: bytes)
                    if isStalled {
                        bytesHeld += bytes.readableBytes
                    } else {
                        machine.written(bytes.readableBytes, at: now)
                    }
                case .producePart: log.append("part")
                case .responseWritten: log.append("done")
                case .closeOutput: log.append("FIN")
                case .close: log.append("close")
                case .abort: log.append("RST")
                }
            }
        }

        func receive(_ text: String) { feed { $0.received(ByteBuffer(string: text), at: now) } }

        func respond(_ status: HTTPResponse.Status = .ok, _ content: HTTPServerResponseBody = .text("")) {
            feed { $0.respond(HTTPResponse(status: status), content, at: now) }
        }

        func accept() {
            feed {
                $0.written(bytesHeld, at: now)
                bytesHeld = 0
            }
        }

        /// Advances to each deadline up to a time.
        func pass(_ span: Nanoseconds) {
            let end = now + span
            while let next = machine.nextDeadline, next <= end {
                now = max(now, next)
                feed { $0.advance(to: now) }
            }
            now = end
        }

        func pass(seconds: Int64) { pass(.seconds(seconds)) }

        /// Returns the actions since the last call.
        func takeLog() -> [String] {
            defer { log = [] }
            return log
        }

        /// Returns the bytes written since the last call.
        func takeOutput() -> String {
            defer { output = "" }
            return output
        }
    }

    private static let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    private static func post(_ length: Int, _ fields: String = "") -> String {
        "POST / HTTP/1.1\r\nHost: h\r\n\(fields)Content-Length: \(length)\r\n\r\n"
    }

    private static func empty(_ status: String, _ connection: String = "close") -> String {
        "HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\(connection.isEmpty ? "" : "Connection: \(connection)\r\n")\r\n"
    }

    // MARK: Order and persistence

    @Test func aRequestIsPassedOnWhenThePreviousResponseIsWritten() {
        let driver = Driver()
        driver.isStalled = true
        driver.receive("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(driver.takeLog() == ["GET /1"] && !driver.machine.wantsInput)
        driver.respond(.ok, .text("one"))
        #expect(driver.takeLog() == [])
        driver.feed { $0.written(10, at: driver.now) }
        driver.bytesHeld -= 10
        #expect(driver.takeLog() == [])
        driver.accept()
        #expect(driver.takeLog() == ["done", "GET /2"])
        #expect(driver.takeOutput() == "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none")
    }

    @Test func connectionCloseSendsFINAfterTheResponseAndDropsInput() {
        let driver = Driver()
        driver.receive("GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n" + Self.get)
        driver.respond()
        #expect(driver.takeLog() == ["GET /", "done", "FIN"])
        #expect(driver.takeOutput() == Self.empty("200 OK"))
        driver.receive(Self.get)
        #expect(driver.takeLog() == [] && driver.machine.wantsInput)
        driver.pass(.milliseconds(4999))
        #expect(driver.takeLog() == [])
        driver.pass(.milliseconds(1))
        #expect(driver.takeLog() == ["close"] && driver.machine.isClosed && driver.machine.nextDeadline == nil)
    }

    @Test func theClientsFINEndsTheLinger() {
        let driver = Driver()
        driver.receive("GET / HTTP/1.0\r\n\r\n")
        driver.respond()
        driver.feed { $0.inputEnded(at: driver.now) }
        #expect(driver.takeLog() == ["GET /", "done", "FIN", "close"])
    }

    @Test func tooMuchInputDuringTheLingerAborts() {
        let driver = Driver { $0.lingerBytesMax = 10 }
        driver.receive("GET / HTTP/1.0\r\n\r\n")
        driver.respond()
        driver.receive("0123456789")
        #expect(driver.takeLog() == ["GET /", "done", "FIN"])
        driver.receive("x")
        #expect(driver.takeLog() == ["RST"])
    }

    @Test func http10IsKeptOnlyWithKeepAlive() {
        let driver = Driver()
        driver.receive("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        driver.respond()
        #expect(driver.takeOutput() == Self.empty("200 OK", "keep-alive"))
        driver.receive("GET / HTTP/1.0\r\n\r\n")
        driver.respond()
        #expect(driver.takeOutput() == Self.empty("200 OK"))
        #expect(driver.takeLog() == ["GET /", "done", "GET /", "done", "FIN"])
    }

    @Test func aHalfClosedClientGetsTheResponsesToItsRequests() {
        let driver = Driver()
        driver.receive("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\nGET /3")
        driver.feed { $0.inputEnded(at: driver.now) }
        driver.respond()
        driver.respond()
        // The third head is incomplete.
        #expect(driver.takeLog() == ["GET /1", "done", "GET /2", "done", "close"])
        #expect(driver.takeOutput() == Self.empty("200 OK", "") + Self.empty("200 OK", ""))
        let last = Driver()
        last.receive(Self.get)
        last.feed { $0.inputEnded(at: last.now) }
        last.respond()
        #expect(last.takeOutput() == Self.empty("200 OK") && last.takeLog() == ["GET /", "done", "close"])
    }

    @Test func aClientThatClosesBetweenRequestsGetsNoResponse() {
        for input in ["", "GET / HT"] {
            let driver = Driver()
            driver.receive(input)
            driver.feed { $0.inputEnded(at: driver.now) }
            #expect(driver.takeLog() == ["close"] && driver.output.isEmpty)
        }
    }

    @Test func aPauseDelaysThePipelinedRequest() {
        let driver = Driver()
        driver.receive(Self.get + Self.get)
        driver.machine.respond(HTTPResponse(status: .ok), .text(""), at: driver.now)
        guard case .write(let bytes)? = driver.machine.takeAction() else { return #expect(Bool(false)) }
        driver.machine.written(bytes.readableBytes, at: driver.now)
        guard case .responseWritten? = driver.machine.takeAction() else { return #expect(Bool(false)) }
        #expect(driver.machine.hasBufferedInput)
        driver.machine.pauseInput(until: driver.now + .milliseconds(20))
        #expect(driver.machine.takeAction() == nil && !driver.machine.wantsInput)
        _ = driver.takeLog()
        driver.pass(.milliseconds(19))
        #expect(driver.takeLog() == [])
        driver.pass(.milliseconds(1))
        #expect(driver.takeLog() == ["GET /"])
    }

    // MARK: Rejections

    @Test func headsThatOtherServersFrameDifferentlyAreRejected() {
        let host = "Host: h\r\n"
        for (head, status) in [
            ("GET / HTTP/1.1\r\n", "400 Bad Request"), ("GET / HTTP/1.1\r\n\(host)\(host)", "400 Bad Request"),
            ("GET / HTTP/1.1\r\nHost: a b\r\n", "400 Bad Request"),
            ("GET / HTTP/1.0\r\n\(host)\(host)", "400 Bad Request"),
            ("POST / HTTP/1.1\r\n\(host)Transfer-Encoding: gzip, chunked\r\n", "501 Not Implemented"),
            ("POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "400 Bad Request"),
            ("POST / HTTP/1.0\r\n\(host)Transfer-Encoding: chunked\r\n", "400 Bad Request"),
            ("POST / HTTP/1.1\r\n\(host)Content-Length: 3\r\nContent-Length: 4\r\n", "400 Bad Request"),
            ("GET / HTTP/2.0\r\n\(host)", "505 HTTP Version Not Supported"),
            ("GET / HTTP/1.1\r\n\(host)X: \(String(repeating: "\u{E9}", count: 513))\r\n", "400 Bad Request"),
            ("GET / HTTP/1.1\r\n\(host)" + String(repeating: "X: y\r\n", count: 100), "400 Bad Request"),
            ("GET /\(String(repeating: "x", count: 16 << 10)) HTTP/1.1\r\n\(host)", "400 Bad Request"),
            ("GET / HTTP/1.1\r\n\(host)X: \(String(repeating: "x", count: 32 << 10))\r\n", "400 Bad Request"),
            ("\u{16}\u{3}\u{1}\n", "400 Bad Request"),
        ] {
            let driver = Driver(defaultHeaders: [.server: "s"])
            driver.receive(head + "\r\n")
            #expect(driver.takeLog() == ["done", "FIN"], "\(head.prefix(80))")
            #expect(
                driver.takeOutput()
                    == "HTTP/1.1 \(status)\r\nServer: s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
    }

    @Test func aRefusedConnectionGets503AndIsClosed() {
        let driver = Driver()
        driver.isStalled = true
        driver.feed { $0.refuse(at: driver.now) }
        driver.receive(Self.get)
        #expect(driver.takeLog() == [] && !driver.machine.wantsInput)
        driver.accept()
        #expect(driver.takeLog() == ["close"] && driver.takeOutput() == Self.empty("503 Service Unavailable"))
    }

    // MARK: Bodies of requests

    @Test func continueIsSentWhenTheBodyIsRead() {
        let driver = Driver()
        driver.receive(Self.post(2, "Expect: 100-continue\r\n"))
        #expect(driver.takeOutput().isEmpty)
        driver.feed { $0.readBody(at: driver.now) }
        #expect(driver.takeOutput() == "HTTP/1.1 100 Continue\r\n\r\n" && driver.machine.wantsInput)
        driver.receive("ab")
        driver.respond()
        #expect(driver.takeLog() == ["POST /", "body ab", "done"])
        // Without a look at the body there is no interim response, and the connection cannot be reused.
        driver.receive(Self.post(2, "Expect: 100-continue\r\n"))
        driver.respond(.forbidden)
        #expect(driver.takeOutput() == Self.empty("200 OK", "") + Self.empty("403 Forbidden"))
        #expect(driver.takeLog() == ["POST /", "done", "FIN"])
    }

    @Test func aDeclaredLengthOverTheLimitFailsBeforeTheBodyArrives() {
        let driver = Driver { $0.bodyBytesMax = 10 }
        driver.receive(Self.post(11, "Expect: 100-continue\r\n"))
        driver.feed { $0.readBody(at: driver.now) }
        #expect(driver.takeLog() == ["POST /", "no body: tooLarge"] && driver.takeOutput().isEmpty)
        driver.respond(.contentTooLarge)
        #expect(driver.takeLog() == ["done", "FIN"] && driver.takeOutput() == Self.empty("413 Content Too Large"))
    }

    @Test func aHandlerMayLowerTheLimit() {
        let driver = Driver()
        driver.receive(Self.post(11))
        driver.feed { $0.readBody(bytesMax: 10, at: driver.now) }
        #expect(driver.takeLog() == ["POST /", "no body: tooLarge"])
    }

    @Test func aChunkedBodyFailsAtTheLimit() {
        let driver = Driver { $0.bodyBytesMax = 4 }
        driver.receive("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        driver.feed { $0.readBody(at: driver.now) }
        driver.receive("4\r\nabcd\r\n1")
        #expect(driver.takeLog() == ["POST /"])
        driver.receive("\r\ne")
        #expect(driver.takeLog() == ["no body: tooLarge"])
        driver.respond(.contentTooLarge)
        #expect(driver.takeLog() == ["done", "FIN"])
    }

    @Test func anUnreadBodyEndsTheConnectionUnlessItHasArrived() {
        for (arrived, log) in [("xyz", ["POST /", "done"]), ("xy", ["POST /", "done", "FIN"])] {
            let driver = Driver()
            driver.receive(Self.post(3) + arrived)
            driver.respond()
            #expect(driver.takeLog() == log)
        }
    }

    @Test func aBodyOverTheBudgetFails() {
        let driver = Driver()
        driver.budget = 4
        driver.receive(Self.post(6) + "abcd")
        driver.feed { $0.readBody(at: driver.now) }
        #expect(driver.takeLog() == ["POST /"])
        driver.receive("ef")
        driver.respond(.serviceUnavailable)
        #expect(driver.takeLog() == ["no body: budgetExceeded", "done", "FIN"])
    }

    @Test func aBodyThatEndsEarlyIsMalformed() {
        let driver = Driver()
        driver.receive(Self.post(6) + "abcd")
        driver.feed { $0.readBody(at: driver.now) }
        driver.feed { $0.inputEnded(at: driver.now) }
        driver.respond(.badRequest)
        #expect(
            driver.takeLog()
                == ["POST /", "no body: malformed(\"the stream ended inside a message\")", "done", "close"])
    }

    // MARK: Bodies of responses

    @Test func responsesWithoutABodyHaveTheLengthOfTheGET() {
        for (method, status, body, fields) in [
            ("HEAD", HTTPResponse.Status.ok, HTTPServerResponseBody.text("text"), "Content-Length: 4\r\n"),
            ("HEAD", .ok, .parts, ""), ("HEAD", .ok, .omitted(length: 7), "Content-Length: 7\r\n"),
            ("HEAD", .ok, .omitted(length: nil), ""), ("GET", .ok, .omitted(length: 7), "Content-Length: 0\r\n"),
            ("GET", .noContent, .text("text"), ""), ("GET", .notModified, .parts, ""),
        ] {
            let driver = Driver()
            driver.receive("\(method) / HTTP/1.1\r\nHost: h\r\n\r\n")
            driver.respond(status, body)
            #expect(driver.takeOutput() == "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n\(fields)\r\n")
            #expect(driver.takeLog() == ["\(method) /", "done"])
        }
    }

    @Test func partsAreProducedOneAtATimeAndChunked() {
        let driver = Driver()
        driver.isStalled = true
        driver.receive(Self.get)
        driver.respond(.ok, .parts)
        #expect(driver.takeLog() == ["GET /"])
        driver.accept()
        driver.feed { $0.sendPart("eleven char", at: driver.now) }
        #expect(driver.takeLog() == ["part"])
        driver.accept()
        driver.feed { $0.sendPart("", at: driver.now) }
        #expect(driver.takeLog() == ["part", "part"])
        driver.feed { $0.endParts(at: driver.now) }
        driver.accept()
        #expect(driver.takeLog() == ["done"])
        #expect(
            driver.takeOutput() == "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\neleven char\r\n0\r\n\r\n")
    }

    @Test func partsForHTTP10EndWithTheConnection() {
        let driver = Driver()
        driver.receive("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        driver.respond(.ok, .parts)
        driver.feed { $0.sendPart("part", at: driver.now) }
        driver.feed { $0.endParts(at: driver.now) }
        #expect(driver.takeLog() == ["GET /", "part", "part", "done", "FIN"])
        #expect(driver.takeOutput() == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart")
    }

    @Test func framingFieldsOfTheHandlerAreReplaced() {
        let driver = Driver(defaultHeaders: [.server: "s", .cacheControl: "no-store"], unixTime: 1_763_829_226)
        driver.receive(Self.get)
        let head = HTTPResponse(
            status: .ok,
            headerFields: [
                .contentLength: "99", .transferEncoding: "chunked", .connection: "close", .cacheControl: "private",
            ])
        driver.feed { $0.respond(head, .text("x"), at: driver.now) }
        #expect(
            driver.takeOutput()
                == "HTTP/1.1 200 OK\r\nCache-Control: private\r\nServer: s\r\n"
                + "Date: Sat, 22 Nov 2025 16:33:46 GMT\r\nContent-Length: 1\r\n\r\nx")
    }

    // MARK: Deadlines

    @Test func anIncompleteFirstHeadGets408ThirtySecondsAfterTheStart() {
        let driver = Driver()
        for _ in 0..<29 {
            driver.pass(seconds: 1)
            driver.receive("G")
        }
        driver.pass(.milliseconds(999))
        #expect(driver.takeLog() == [])
        driver.pass(.milliseconds(1))
        #expect(driver.takeLog() == ["done", "FIN"] && driver.takeOutput() == Self.empty("408 Request Timeout"))
    }

    @Test func aClientThatSendsNothingGetsNoResponse() {
        let driver = Driver()
        driver.pass(.milliseconds(29_999))
        #expect(driver.takeLog() == [])
        driver.pass(.milliseconds(1))
        #expect(driver.takeLog() == ["close"] && driver.output.isEmpty)
    }

    @Test func anIdleConnectionIsClosedAfterSixtySeconds() {
        let driver = Driver()
        driver.receive(Self.get)
        driver.pass(seconds: 100)
        driver.respond()
        driver.pass(.milliseconds(59_999))
        #expect(driver.takeLog() == ["GET /", "done"])
        driver.pass(.milliseconds(1))
        #expect(driver.takeLog() == ["close"])
    }

    @Test func aLaterHeadHasThirtySecondsFromItsFirstByte() {
        let driver = Driver()
        driver.receive(Self.get)
        driver.respond()
        driver.pass(seconds: 59)
        driver.receive("G")
        driver.pass(.milliseconds(29_999))
        #expect(driver.takeLog() == ["GET /", "done"])
        driver.pass(.milliseconds(1))
        #expect(driver.takeLog() == ["done", "FIN"])
        #expect(driver.takeOutput() == Self.empty("200 OK", "") + Self.empty("408 Request Timeout"))
    }

    @Test func aBodyMustKeepTheMinimumRateInEachWindow() {
        let driver = Driver()
        driver.receive(Self.post(100_000))
        driver.pass(seconds: 500)
        driver.feed { $0.readBody(at: driver.now) }
        // 250 bytes/s over windows of 30 s are 7500 bytes per window, wherever they are in it.
        for bytes in [7500, 7500, 7499] {
            #expect(driver.takeLog().allSatisfy { $0 == "POST /" })
            driver.pass(.milliseconds(29_999))
            driver.receive(String(repeating: "x", count: bytes))
            driver.pass(.milliseconds(1))
        }
        #expect(driver.takeLog() == ["no body: tooSlow"])
        driver.respond(.requestTimeout)
        #expect(driver.takeLog() == ["done", "FIN"] && driver.takeOutput() == Self.empty("408 Request Timeout"))
    }

    /// The total time has no limit, because a mobile network may be slow.
    @Test func aSlowBodyArrivesWhileItKeepsTheMinimumRate() {
        let driver = Driver()
        driver.receive(Self.post(100_000))
        driver.feed { $0.readBody(at: driver.now) }
        for _ in 0..<400 {
            driver.receive(String(repeating: "x", count: 250))
            driver.pass(seconds: 1)
        }
        #expect(driver.takeLog() == ["POST /", "body \(String(repeating: "x", count: 100_000))"])
        // The handler has all the time it wants.
        #expect(driver.machine.nextDeadline == nil)
    }

    @Test func aClientThatDoesNotReceiveAResponseIsAborted() {
        let driver = Driver()
        driver.isStalled = true
        driver.receive(Self.get)
        driver.respond(.ok, .text(String(repeating: "x", count: 200_000)))
        for write in 1...4 {
            // 60 s and the time for the bytes at 200 bytes/s.
            driver.pass(Nanoseconds(60_000_000_000 + Int64(driver.bytesHeld) * 5_000_000 - 1))
            #expect(driver.takeLog() == (write == 1 ? ["GET /"] : []))
            if write < 4 { driver.accept() }
        }
        #expect(driver.output.hasPrefix("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\nxxx"))
        #expect(driver.output.utf8.count == 200_000 + 43 && driver.bytesHeld == 200_000 - 3 * 64 << 10)
        driver.pass(Nanoseconds(1))
        #expect(driver.takeLog() == ["RST"] && driver.machine.nextDeadline == nil)
    }

    @Test func aWaitForThePartsHasNoDeadline() {
        let driver = Driver()
        driver.receive(Self.get)
        driver.respond(.ok, .parts)
        #expect(driver.machine.nextDeadline == nil && driver.takeLog() == ["GET /", "part"])
        driver.isStalled = true
        driver.feed { $0.sendPart("x", at: driver.now) }
        driver.pass(seconds: 61)
        #expect(driver.takeLog() == ["RST"])
    }

    // MARK: The end of the connection

    @Test func aHandlerThatReadsLearnsOfTheEndOfTheConnection() {
        let driver = Driver()
        driver.receive(Self.post(3))
        driver.feed { $0.readBody(at: driver.now) }
        driver.feed { $0.connectionClosed(at: driver.now) }
        #expect(driver.takeLog() == ["POST /", "no body: malformed(\"the connection was closed\")"])
        driver.respond()
        driver.feed { $0.readBody(at: driver.now) }
        #expect(driver.takeLog() == ["no body: malformed(\"the connection was closed\")"] && driver.output.isEmpty)
        #expect(driver.machine.nextDeadline == nil && !driver.machine.wantsInput)
    }

    @Test func anAbortOrCloseByTheHandlerIsTheLastAction() {
        for (isAbort, word) in [(true, "RST"), (false, "close")] {
            let driver = Driver()
            driver.receive(Self.get + Self.get)
            driver.feed { isAbort ? $0.abort(at: driver.now) : $0.close(at: driver.now) }
            driver.feed { $0.close(at: driver.now) }
            driver.receive(Self.get)
            driver.respond()
            driver.pass(seconds: 1000)
            #expect(driver.takeLog() == ["GET /", word] && driver.output.isEmpty)
        }
    }

    @Test func inputDuringAResponseIsBounded() {
        let driver = Driver {
            $0.headerBytesMax = 100
            $0.readBytesMax = 10
        }
        driver.receive(Self.get)
        driver.receive(String(repeating: "x", count: 140))
        #expect(driver.takeLog() == ["GET /"])
        driver.receive("x")
        #expect(driver.takeLog() == ["RST"])
    }

    @Test func limitsThatASpanCannotHoldAreClamped() {
        #expect(HTTPServerLimits.span(.infinity) == Nanoseconds(.max))
        #expect(HTTPServerLimits.span(1e300) == Nanoseconds(.max))
        #expect(HTTPServerLimits.span(.nan) == .zero && HTTPServerLimits.span(-1) == .zero)
        #expect(HTTPServerLimits.span(0.2) == .milliseconds(200))
        let driver = Driver { $0.headSecondsMax = .infinity }
        #expect(driver.machine.nextDeadline == .never)
    }
}
