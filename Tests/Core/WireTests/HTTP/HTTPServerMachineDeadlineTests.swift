import Determinism
import HTTPTypes
import NIOCore
import Testing

@testable import Wire

/// The deadlines of the server side of one connection, in virtual time.
@Suite struct HTTPServerMachineDeadlineTests {
    private typealias Driver = HTTPServerMachineDriver

    @Test func anIncompleteFirstHeadGets408ThirtySecondsAfterTheStart() {
        let driver = Driver()
        for _ in 0..<29 {
            driver.pass(seconds: 1)
            driver.receive("G")
        }
        driver.pass(.milliseconds(999))
        #expect(driver.takeLog() == [])
        driver.pass(.milliseconds(1))
        #expect(driver.takeLog() == ["done", "FIN"] && driver.takeOutput() == Driver.empty("408 Request Timeout"))
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
        driver.receive(Driver.get)
        driver.pass(seconds: 100)
        driver.respond()
        driver.pass(.milliseconds(59_999))
        #expect(driver.takeLog() == ["GET /", "done"])
        driver.pass(.milliseconds(1))
        #expect(driver.takeLog() == ["close"])
    }

    @Test func aLaterHeadHasThirtySecondsFromItsFirstByte() {
        let driver = Driver()
        driver.receive(Driver.get)
        driver.respond()
        driver.pass(seconds: 59)
        driver.receive("G")
        driver.pass(.milliseconds(29_999))
        #expect(driver.takeLog() == ["GET /", "done"])
        driver.pass(.milliseconds(1))
        #expect(driver.takeLog() == ["done", "FIN"])
        #expect(driver.takeOutput() == Driver.empty("200 OK", "") + Driver.empty("408 Request Timeout"))
    }

    @Test func aBodyMustKeepTheMinimumRateInEachWindow() {
        let driver = Driver()
        driver.receive(Driver.post(100_000))
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
        #expect(driver.takeLog() == ["done", "FIN"] && driver.takeOutput() == Driver.empty("408 Request Timeout"))
    }

    /// The total time has no limit, because a mobile network may be slow.
    @Test func aSlowBodyArrivesWhileItKeepsTheMinimumRate() {
        let driver = Driver()
        driver.receive(Driver.post(100_000))
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
        driver.receive(Driver.get)
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
        driver.receive(Driver.get)
        driver.respond(.ok, .parts)
        #expect(driver.machine.nextDeadline == nil && driver.takeLog() == ["GET /", "part"])
        driver.isStalled = true
        driver.feed { $0.sendPart("x", at: driver.now) }
        driver.pass(seconds: 61)
        #expect(driver.takeLog() == ["RST"])
    }
}
