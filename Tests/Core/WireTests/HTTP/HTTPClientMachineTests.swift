import Determinism
import NIOCore
import Testing

@testable import Wire

@Suite struct HTTPClientMachineTests {
    private let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    @Test func anIdleConnectionIsReused() {
        let driver = HTTPClientDriver()
        driver.start()
        driver.up(0)
        driver.bytes(0, ok)
        driver.start("PUT", "/x", body: Array("body".utf8))
        driver.bytes(0, ok)
        #expect(driver.log == ["connect 0", "write 0", "0: 200 hi", "write 0", "1: 200 hi"])
        #expect(
            driver.written[0].map { String(buffer: $0) }
                == "GET / HTTP/1.1\r\nHost: h\r\n\r\nPUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody")
        driver.pass(14)
        #expect(driver.log.last == "1: 200 hi")
        driver.pass(1)
        #expect(driver.log.last == "close 0", "an unused connection is kept for 15 s")
    }

    @Test func theBodyOfAStreamedResponseArrivesInPieces() {
        let driver = HTTPClientDriver(bodyMax: 8)
        driver.start(isStreamed: true)
        driver.up(0)
        driver.bytes(0, "HTTP/1.1 206 OK\r\nContent-Length: 6\r\n\r\nab")
        driver.bytes(0, "cd")
        #expect(driver.log.suffix(2) == ["0: 206 piece ab", "0: 206 piece cd"], "before the body is complete")
        driver.bytes(0, "ef")
        #expect(driver.log.suffix(2) == ["0: 206 piece ef", "0: 206 "])

        driver.start(isStreamed: true)
        driver.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab")
        driver.closed(0, .reset)
        #expect(driver.log.suffix(2).first == "1: 200 piece ab", "the pieces before a failure are not lost")

        driver.start(isStreamed: true)
        driver.up(1)
        driver.bytes(1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n5\r\nfghij\r\n0\r\n\r\n")
        #expect(driver.errors[2]?.reason == .bodyTooLarge, "the limit holds for all pieces together")
    }

    @Test func aFailedRequestIsNotSentAgain() {
        let driver = HTTPClientDriver()
        driver.start()
        driver.up(0)
        driver.bytes(0, ok)
        driver.start("POST", "/x", body: Array("body".utf8))
        driver.closed(0, .reset)
        #expect(driver.log.last == "1: reset before the response was complete, sent, reused")
        #expect(!driver.log.contains("connect 1"))
        #expect(driver.machine.nextDeadline == nil)
    }

    @Test func eachTimeoutExpiresAtItsDeadline() {
        let connect = HTTPClientDriver()
        connect.start()
        #expect(connect.machine.nextDeadline == Instant(.seconds(10)))
        connect.pass(10)
        #expect(connect.log == ["connect 0", "close 0!", "0: timed out (connect), notSent"])

        let first = HTTPClientDriver()
        first.start()
        first.up(0)
        #expect(first.machine.nextDeadline == Instant(.seconds(30)))
        first.pass(30)
        #expect(first.log.suffix(2) == ["close 0!", "0: timed out (first byte), sent"])

        let idle = HTTPClientDriver()
        idle.start()
        idle.up(0)
        idle.pass(5)
        idle.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        #expect(idle.machine.nextDeadline == Instant(.seconds(25)))
        idle.pass(20)
        #expect(idle.log.last == "0: timed out (idle), responding")

        let whole = HTTPClientDriver()
        whole.start()
        whole.up(0)
        whole.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        for _ in 0..<8 {
            whole.pass(10)
            whole.bytes(0, "x")
        }
        #expect(whole.machine.nextDeadline == Instant(.seconds(90)))
        whole.pass(10)
        #expect(whole.log.last == "0: timed out (whole exchange), responding")
    }

    @Test func exchangesWaitInOrderForAConnection() {
        let driver = HTTPClientDriver(connectionsMax: 1)
        for target in ["/a", "/b", "/c"] { driver.start("GET", target) }
        #expect(driver.log == ["connect 0"])
        driver.up(0)
        for _ in 0..<3 { driver.bytes(0, ok) }
        #expect(driver.log.filter { $0.contains("200") } == ["0: 200 hi", "1: 200 hi", "2: 200 hi"])
        #expect(driver.written[0].map { String(buffer: $0) }?.hasPrefix("GET /a ") == true)
    }

    @Test func malformedAndIncompleteResponsesFail() {
        for (text, expected) in [
            ("HTTP/1.1 20", "0: malformed HTTP message: malformed start line, responding"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
                "0: closed before the response was complete, responding"
            ),
            ("HTTP", "0: closed before the response was complete, responding"),
        ] {
            let driver = HTTPClientDriver()
            driver.start()
            driver.up(0)
            driver.bytes(0, text + (text.hasSuffix("20") ? "\r\n\r\n" : ""))
            driver.closed(0)
            #expect(driver.log.contains(expected), "\(text): \(driver.log)")
        }
    }

    @Test func aResponseDelimitedByTheCloseIsCompleteThen() {
        let driver = HTTPClientDriver()
        driver.start()
        driver.up(0)
        driver.bytes(0, "HTTP/1.1 200 OK\r\n\r\nall")
        driver.closed(0)
        #expect(driver.log.contains("0: 200 all"))
    }

    @Test func aConnectionIsClosedIfTheServerAsksForIt() {
        let driver = HTTPClientDriver()
        driver.start()
        driver.up(0)
        driver.bytes(0, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        #expect(driver.log.suffix(2) == ["0: 200 ", "close 0"])
        driver.start()
        #expect(driver.log.last == "connect 1")
    }

    @Test func unexpectedBytesAbortTheConnection() {
        let driver = HTTPClientDriver()
        driver.start()
        driver.up(0)
        driver.bytes(0, ok)
        driver.bytes(0, ok)
        #expect(driver.log.last == "close 0!")
    }

    @Test func refusedAndCancelledExchangesFail() {
        let driver = HTTPClientDriver()
        driver.start()
        driver.feed { $0.connectFailed(HTTPConnectionID(number: 0), reason: .refused, at: driver.now) }
        #expect(driver.log.last == "0: connection refused, notSent")
        driver.start()
        driver.up(1)
        driver.feed { $0.cancel(HTTPExchangeID(number: 1), at: driver.now) }
        #expect(driver.log.suffix(2) == ["close 1!", "1: cancelled, sent"])
    }

    @Test(arguments: [["<"], ["220 mail.example ESMTP\r\n"], ["HT", "ML"], ["http/1.1 200 OK\r\n\r\n"]])
    func aResponseThatDoesNotBeginWithHTTPIsNotHTTP(_ pieces: [String]) {
        let driver = HTTPClientDriver()
        driver.start()
        driver.up(0)
        for piece in pieces { driver.bytes(0, piece) }
        #expect(driver.errors[0]?.reason == .notHTTP, "without waiting for the end of a line")
        #expect(driver.errors[0]?.phase == .responding)
        #expect(driver.log.contains("close 0!"))
    }

    /// The check belongs to the exchange: what other connections received does not matter.
    @Test func notHTTPIsRecognisedOnAReusedConnection() {
        let driver = HTTPClientDriver()
        driver.start()
        driver.start("GET", "/", pool: 1)
        driver.up(0)
        driver.up(1)
        driver.bytes(0, "HT")
        driver.bytes(1, ok)
        driver.bytes(0, String(ok.dropFirst(2)))
        #expect(driver.responses.count == 2)
        driver.start()
        driver.bytes(0, "<html>")
        #expect(driver.errors[2]?.reason == .notHTTP)
    }

    @Test(arguments: [
        ("HTTP/2.0 200 OK\r\n\r\n", HTTPError.badVersion), ("HTTP/1.1 101 Up\r\n\r\n", .unexpectedResponse),
    ])
    func aResponseThatBeginsWithHTTPIsMalformed(_ text: String, _ error: HTTPError) {
        let driver = HTTPClientDriver()
        driver.start()
        driver.up(0)
        driver.bytes(0, text)
        #expect(driver.errors[0]?.reason == .malformed(error))
    }

    @Test func aBodyLargerThanItsLimitFails() {
        for (count, isTooLarge) in [(1_000, false), (1_001, true)] {
            let driver = HTTPClientDriver(bodyMax: 1_000)
            driver.start()
            driver.up(0)
            driver.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n")
            driver.bytes(0, count: 600)
            driver.bytes(0, count: count - 600)
            #expect((driver.errors[0]?.reason == .bodyTooLarge) == isTooLarge)
            #expect((driver.responses[0]?.body.count == count) != isTooLarge)
        }
    }

    @Test func interimResponsesAreLimited() {
        for (count, status) in [(100, 200 as Int?), (101, nil)] {
            let driver = HTTPClientDriver()
            driver.start()
            driver.up(0)
            for _ in 0..<count { driver.bytes(0, "HTTP/1.1 102 Processing\r\n\r\n") }
            driver.bytes(0, ok)
            #expect(driver.responses[0]?.head.status == status)
            #expect((driver.errors[0] == nil) == (status != nil))
        }
    }

    @Test func waitingExchangesAreLimited() {
        let driver = HTTPClientDriver(waitingMax: 2)
        for _ in 0..<3 { driver.start() }
        #expect(driver.errors[2]?.reason == .tooManyWaiting && driver.errors[2]?.phase == .notSent)
        driver.start("GET", "/", pool: 1)
        #expect(driver.errors[3] == nil, "each pool has its own limit")
        driver.up(0)
        driver.start()
        #expect(driver.errors[4] == nil, "one exchange is no longer waiting")
    }

    @Test func aWaitingExchangeFailsAfterItsTotalTimeWithoutTouchingOthers() {
        let driver = HTTPClientDriver()
        driver.start()
        driver.up(0)
        driver.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        driver.start()
        driver.start()
        for _ in 0..<89 {
            driver.pass(1)
            driver.bytes(0, count: 2_000)
        }
        #expect(driver.errors.isEmpty)
        driver.pass(1)
        #expect(driver.errors[1]?.reason == .timedOut(.exchange) && driver.errors[1]?.phase == .notSent)
        #expect(driver.errors[2]?.reason == .timedOut(.exchange))
        #expect(driver.errors[0] == nil && !driver.log.contains("close 0!"))
    }
}
