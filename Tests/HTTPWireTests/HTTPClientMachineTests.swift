import Determinism
import NIOCore
import Testing

@testable import HTTPWire

@Suite struct HTTPClientMachineTests {
    /// A driver that records the machine's actions as text.
    private final class Driver {
        var machine: HTTPClientMachine
        var now = Instant.start
        var log: [String] = []
        var written: [Int: String] = [:]

        init(connectionsMax: Int = 2) { machine = HTTPClientMachine(host: "h", connectionsMax: connectionsMax) }

        func start(_ method: String = "GET", _ target: String = "/") {
            _ = machine.start(
                HTTPClientRequest(method: method, target: target, body: method == "GET" ? [] : Array("body".utf8)),
                at: now)
            drain()
        }

        func drain() {
            while let action = machine.takeAction() {
                switch action {
                case .connect(let id): log.append("connect \(id.number)")
                case .write(let id, let bytes):
                    written[id.number, default: ""] += String(buffer: bytes)
                    log.append("write \(id.number)")
                case .close(let id, let isAbortive): log.append("close \(id.number)\(isAbortive ? "!" : "")")
                case .finished(let id, .success(let response)):
                    log.append(
                        "\(id.number): \(response.head.status) \(String(decoding: response.body, as: UTF8.self))")
                case .finished(let id, .failure(let failure)):
                    log.append("\(id.number): \(failure), \(failure.phase)\(failure.wasReused ? ", reused" : "")")
                }
            }
        }

        func up(_ number: Int) { feed { $0.connected(HTTPConnectionID(number: number), at: now) } }

        func bytes(_ number: Int, _ text: String) {
            feed { $0.received(ByteBuffer(string: text), on: HTTPConnectionID(number: number), at: now) }
        }

        func closed(_ number: Int, _ how: HTTPCloseReason = .fin) {
            feed { $0.closed(HTTPConnectionID(number: number), how: how, at: now) }
        }

        func feed(_ body: (inout HTTPClientMachine) -> Void) {
            body(&machine)
            drain()
        }

        func pass(_ seconds: Int64) {
            now = now + .seconds(seconds)
            feed { $0.advance(to: now) }
        }
    }

    private let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    @Test func anIdleConnectionIsReused() {
        let driver = Driver()
        driver.start()
        driver.up(0)
        driver.bytes(0, ok)
        driver.start("PUT", "/x")
        driver.bytes(0, ok)
        #expect(driver.log == ["connect 0", "write 0", "0: 200 hi", "write 0", "1: 200 hi"])
        #expect(
            driver.written[0]
                == "GET / HTTP/1.1\r\nHost: h\r\n\r\nPUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody")
        driver.pass(14)
        #expect(driver.log.last == "1: 200 hi")
        driver.pass(1)
        #expect(driver.log.last == "close 0", "an unused connection is kept for 15 s")
    }

    @Test func aFailedRequestIsNotSentAgain() {
        let driver = Driver()
        driver.start()
        driver.up(0)
        driver.bytes(0, ok)
        driver.start("POST", "/x")
        driver.closed(0, .reset)
        #expect(driver.log.last == "1: reset before the response was complete, sent, reused")
        #expect(!driver.log.contains("connect 1"))
        #expect(driver.machine.nextDeadline == nil)
    }

    @Test func eachTimeoutExpiresAtItsDeadline() {
        let connect = Driver()
        connect.start()
        #expect(connect.machine.nextDeadline == Instant(.seconds(10)))
        connect.pass(10)
        #expect(connect.log == ["connect 0", "close 0!", "0: timed out (connect), notSent"])

        let first = Driver()
        first.start()
        first.up(0)
        #expect(first.machine.nextDeadline == Instant(.seconds(30)))
        first.pass(30)
        #expect(first.log.suffix(2) == ["close 0!", "0: timed out (first byte), sent"])

        let idle = Driver()
        idle.start()
        idle.up(0)
        idle.pass(5)
        idle.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        #expect(idle.machine.nextDeadline == Instant(.seconds(25)))
        idle.pass(20)
        #expect(idle.log.last == "0: timed out (idle), responding")

        let whole = Driver()
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
        let driver = Driver(connectionsMax: 1)
        for target in ["/a", "/b", "/c"] { driver.start("GET", target) }
        #expect(driver.log == ["connect 0"])
        driver.up(0)
        for _ in 0..<3 { driver.bytes(0, ok) }
        #expect(driver.log.filter { $0.contains("200") } == ["0: 200 hi", "1: 200 hi", "2: 200 hi"])
        #expect(driver.written[0]?.contains("/a") == true)
    }

    @Test func malformedAndIncompleteResponsesFail() {
        for (text, expected) in [
            ("<html>", "0: not HTTP: malformed start line, responding"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
                "0: closed before the response was complete, responding"
            ),
            ("HTTP", "0: closed before the response was complete, responding"),
        ] {
            let driver = Driver()
            driver.start()
            driver.up(0)
            driver.bytes(0, text + (text == "<html>" ? "\r\n\r\n" : ""))
            driver.closed(0)
            #expect(driver.log.contains(expected), "\(text): \(driver.log)")
        }
    }

    @Test func aResponseDelimitedByTheCloseIsCompleteThen() {
        let driver = Driver()
        driver.start()
        driver.up(0)
        driver.bytes(0, "HTTP/1.1 200 OK\r\n\r\nall")
        driver.closed(0)
        #expect(driver.log.contains("0: 200 all"))
    }

    @Test func aConnectionIsClosedIfTheServerAsksForIt() {
        let driver = Driver()
        driver.start()
        driver.up(0)
        driver.bytes(0, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        #expect(driver.log.suffix(2) == ["0: 200 ", "close 0"])
        driver.start()
        #expect(driver.log.last == "connect 1")
    }

    @Test func unexpectedBytesAbortTheConnection() {
        let driver = Driver()
        driver.start()
        driver.up(0)
        driver.bytes(0, ok)
        driver.bytes(0, ok)
        #expect(driver.log.last == "close 0!")
    }

    @Test func refusedAndCancelledExchangesFail() {
        let driver = Driver()
        driver.start()
        driver.feed { $0.connectFailed(HTTPConnectionID(number: 0), reason: .refused, at: driver.now) }
        #expect(driver.log.last == "0: connection refused, notSent")
        driver.start()
        driver.up(1)
        driver.feed { $0.cancel(HTTPExchangeID(number: 1), at: driver.now) }
        #expect(driver.log.suffix(2) == ["close 1!", "1: cancelled, sent"])
    }
}
