import Determinism
import HTTPTypes
import NIOCore
import TestSupport
import Testing

@testable import Wire

/// The server side of one connection, in virtual time.
@Suite struct HTTPServerMachineTests {
    private typealias Driver = HTTPServerMachineDriver

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
        driver.receive("GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n" + Driver.get)
        driver.respond()
        #expect(driver.takeLog() == ["GET /", "done", "FIN"])
        #expect(driver.takeOutput() == Driver.empty("200 OK"))
        driver.receive(Driver.get)
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
        #expect(driver.takeOutput() == Driver.empty("200 OK", "keep-alive"))
        driver.receive("GET / HTTP/1.0\r\n\r\n")
        driver.respond()
        #expect(driver.takeOutput() == Driver.empty("200 OK"))
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
        #expect(driver.takeOutput() == Driver.empty("200 OK", "") + Driver.empty("200 OK", ""))
        let last = Driver()
        last.receive(Driver.get)
        last.feed { $0.inputEnded(at: last.now) }
        last.respond()
        #expect(last.takeOutput() == Driver.empty("200 OK") && last.takeLog() == ["GET /", "done", "close"])
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
        driver.receive(Driver.get + Driver.get)
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
        driver.receive(Driver.get)
        #expect(driver.takeLog() == [] && !driver.machine.wantsInput)
        driver.accept()
        #expect(driver.takeLog() == ["close"] && driver.takeOutput() == Driver.empty("503 Service Unavailable"))
    }

    // MARK: Bodies of requests

    @Test func continueIsSentWhenTheBodyIsRead() {
        let driver = Driver()
        driver.receive(Driver.post(2, "Expect: 100-continue\r\n"))
        #expect(driver.takeOutput().isEmpty)
        driver.feed { $0.readBody(at: driver.now) }
        #expect(driver.takeOutput() == "HTTP/1.1 100 Continue\r\n\r\n" && driver.machine.wantsInput)
        driver.receive("ab")
        driver.respond()
        #expect(driver.takeLog() == ["POST /", "body ab", "done"])
        // Without a look at the body there is no interim response, and the connection cannot be reused.
        driver.receive(Driver.post(2, "Expect: 100-continue\r\n"))
        driver.respond(.forbidden)
        #expect(driver.takeOutput() == Driver.empty("200 OK", "") + Driver.empty("403 Forbidden"))
        #expect(driver.takeLog() == ["POST /", "done", "FIN"])
    }

    @Test func aDeclaredLengthOverTheLimitFailsBeforeTheBodyArrives() {
        let driver = Driver { $0.bodyBytesMax = 10 }
        driver.receive(Driver.post(11, "Expect: 100-continue\r\n"))
        driver.feed { $0.readBody(at: driver.now) }
        #expect(driver.takeLog() == ["POST /", "no body: tooLarge"] && driver.takeOutput().isEmpty)
        driver.respond(.contentTooLarge)
        #expect(driver.takeLog() == ["done", "FIN"] && driver.takeOutput() == Driver.empty("413 Content Too Large"))
    }

    @Test func aHandlerMayLowerTheLimit() {
        let driver = Driver()
        driver.receive(Driver.post(11))
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
            driver.receive(Driver.post(3) + arrived)
            driver.respond()
            #expect(driver.takeLog() == log)
        }
    }

    @Test func aBodyOverTheBudgetFails() {
        let driver = Driver()
        driver.budget = 4
        driver.receive(Driver.post(6) + "abcd")
        driver.feed { $0.readBody(at: driver.now) }
        #expect(driver.takeLog() == ["POST /"])
        driver.receive("ef")
        driver.respond(.serviceUnavailable)
        #expect(driver.takeLog() == ["no body: budgetExceeded", "done", "FIN"])
    }

    @Test func aBodyThatEndsEarlyIsMalformed() {
        let driver = Driver()
        driver.receive(Driver.post(6) + "abcd")
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
        driver.receive(Driver.get)
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

    @Test func partsOfKnownLengthMustHaveThatLength() {
        for (parts, log) in [
            (["one", "", "two"], ["GET /", "part", "part", "part", "done"]),
            (["one", "four"], ["GET /", "part", "part", "RST"]),
            (["one"], ["GET /", "part", "part", "RST"]),
        ] {
            let driver = Driver()
            driver.receive(Driver.get)
            driver.respond(.ok, .bytes(length: 6))
            for part in parts { driver.feed { $0.sendBytes(Array(part.utf8), at: driver.now) } }
            if parts.count == 1 { driver.feed { $0.endParts(at: driver.now) } }
            #expect(driver.takeLog() == log)
        }
        let empty = Driver()
        empty.receive(Driver.get)
        empty.respond(.ok, .bytes(length: 0))
        #expect(empty.takeLog() == ["GET /", "done"] && empty.takeOutput() == Driver.empty("200 OK", ""))
    }

    @Test func framingFieldsOfTheHandlerAreReplaced() {
        let driver = Driver(defaultHeaders: [.server: "s", .cacheControl: "no-store"], unixTime: 1_763_829_226)
        driver.receive(Driver.get)
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

    // MARK: The end of the connection

    @Test func aHandlerThatReadsLearnsOfTheEndOfTheConnection() {
        let driver = Driver()
        driver.receive(Driver.post(3))
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
            driver.receive(Driver.get + Driver.get)
            driver.feed { isAbort ? $0.abort(at: driver.now) : $0.close(at: driver.now) }
            driver.feed { $0.close(at: driver.now) }
            driver.receive(Driver.get)
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
        driver.receive(Driver.get)
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
