import Determinism
import NIOCore
import Testing

@testable import Wire

/// Requests in pieces, and the timeouts that follow the progress of an exchange.
@Suite struct HTTPClientUploadTests {
    private let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    /// Returns a driver with a PUT of this number of bytes, head included, on connection 0.
    private func upload(_ byteCount: Int, acceptsAll: Bool = false) throws -> HTTPClientDriver {
        let bodySize = (0..<byteCount).last { (size: Int) in
            size + "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n".utf8.count == byteCount
        }
        let size = try #require(bodySize)
        let driver = HTTPClientDriver()
        driver.acceptsAll = acceptsAll
        driver.start("PUT", body: (0..<size).map { UInt8(truncatingIfNeeded: $0) })
        driver.up(0)
        return driver
    }

    // MARK: Pieces

    @Test func aSmallRequestIsOneWrite() throws {
        #expect(try upload(16 << 10).pieces[0] == [16 << 10])
        #expect(try upload((16 << 10) + 1).pieces[0] == [16 << 10, 1])
    }

    @Test func theNextPieceFollowsTheAcceptanceOfAPiece() throws {
        let driver = try upload(100_000)
        #expect(driver.pieces[0] == [16_384, 16_384], "two are outstanding")
        driver.accept(0, 16_383)
        #expect(driver.pieces[0]?.count == 2, "a part of a piece is outstanding")
        driver.accept(0, 1)
        #expect(driver.pieces[0]?.count == 3)
        driver.accept(0, 2 * 16_384)
        #expect(driver.pieces[0]?.count == 5, "one report covers two pieces")
        driver.accept(0, 16_384 + 1_000)
        driver.accept(0, 16_384 - 1_000)
        #expect(driver.pieces[0] == Array(repeating: 16_384, count: 6) + [1_696])
        driver.accept(0, 16_384 + 1_696)
        var parser = HTTPParser(.requests)
        parser.received(try #require(driver.written[0]))
        let messages = try parser.messages()
        #expect(messages.count == 1 && messages[0].isWhole)
        #expect(messages[0].body == (0..<messages[0].body.count).map { UInt8(truncatingIfNeeded: $0) })
    }

    @Test func aHeadLargerThanAPieceIsDivided() {
        let driver = HTTPClientDriver()
        let value = String(repeating: "v", count: 8_000)
        driver.start("GET", "/", fields: [("A", value), ("B", value), ("C", value)])
        driver.up(0)
        #expect(driver.pieces[0]?.first == 16_384 && driver.pieces[0]?.count == 2)
        #expect(
            driver.written[0].map { String(buffer: $0) }
                == "GET / HTTP/1.1\r\nHost: h\r\nA: \(value)\r\nB: \(value)\r\nC: \(value)\r\n\r\n")
        driver.bytes(0, ok)
        #expect(driver.log.last == "0: 200 hi")
    }

    @Test func reportsBeyondTheWrittenBytesAreRejected() {
        var writer = HTTPRequestWriter(head: ByteBuffer(string: "head"), body: Array(repeating: 1, count: 40_000))
        var results = [writer.recordAccepted(0), writer.recordAccepted(1)]
        #expect(results == [true, false], "nothing was taken")
        let first = writer.takePiece()
        #expect(first?.readableBytes == 16_384)
        results = [16_385, -1, 16_384, 1].map { writer.recordAccepted($0) }
        #expect(results == [false, false, true, false])
        while let piece = writer.takePiece() { _ = writer.recordAccepted(piece.readableBytes) }
        #expect(writer.isAccepted)
    }

    // MARK: Slow and dead links

    /// A kernel whose send buffer drains at a constant rate. As Linux, it accepts bytes again when a third of the
    /// buffer is free.
    private struct Kernel {
        static let capacity = 192 << 10
        var rate: Int
        var buffered = 0

        /// Advances the driver by 100 ms, with the kernel on connection 0.
        mutating func step(_ driver: HTTPClientDriver) {
            driver.pass(.milliseconds(100))
            buffered -= min(buffered, rate / 10)
            guard Self.capacity - buffered >= Self.capacity / 3 else { return }
            while driver.errors.isEmpty {
                let count = min(driver.outstanding(0), Self.capacity - buffered)
                guard count > 0 else { return }
                buffered += count
                driver.accept(0, count)
            }
        }
    }

    /// Edge: 200 kbit/s up.
    @Test(arguments: [900_000, 5_000_000]) func aLargeBodyArrivesOverASlowLink(_ size: Int) throws {
        let driver = try upload(size)
        var kernel = Kernel(rate: 25_000)
        while driver.errors.isEmpty, (driver.accepted[0] ?? 0) < size || kernel.buffered > 0 { kernel.step(driver) }
        driver.pass(1)
        driver.bytes(0, ok)
        #expect(driver.log.last == "0: 200 hi")
        #expect(driver.now - .start >= .seconds(Int64(size / 25_000)), "the link is the bottleneck")
    }

    @Test func aLinkThatDiesDuringTheBodyIsNoticedWithinThirtySeconds() throws {
        let driver = try upload(900_000)
        var kernel = Kernel(rate: 25_000)
        for _ in 0..<100 { kernel.step(driver) }
        #expect(driver.outstanding(0) > 0)
        kernel.rate = 0
        let died = driver.now
        while driver.errors.isEmpty, driver.now - died < .seconds(60) { kernel.step(driver) }
        #expect(driver.errors[0]?.reason == .timedOut(.upload) && driver.errors[0]?.phase == .sent)
        #expect(driver.now - died <= .seconds(30))
        #expect(driver.now - died > .seconds(20), "not before 30 s without a byte")
    }

    @Test func theUploadTimeoutMovesWithEachAcceptedByte() throws {
        let driver = try upload(50_000)
        #expect(driver.machine.nextDeadline == Instant(.seconds(30)))
        driver.pass(29)
        driver.accept(0, 1)
        #expect(driver.machine.nextDeadline == Instant(.seconds(59)))
        driver.pass(.milliseconds(29_999))
        #expect(driver.errors.isEmpty)
        driver.pass(.milliseconds(1))
        #expect(driver.log.suffix(2) == ["close 0!", "0: timed out (upload), sent"])
    }

    // MARK: The first byte

    /// Accepted bytes may be in the send buffer: the wait is longer by the time that they take at 1 kB/s.
    @Test(
        arguments: zip(
            [16_384, 16_385, 40_000, 196_608, 3_000_000], [30_000, 46_385, 70_000, 226_608, 226_608] as [Int64])
    )
    func theFirstByteIsAwaitedFromTheLastAcceptedByte(_ size: Int, _ milliseconds: Int64) throws {
        let driver = try upload(size)
        driver.pass(5)
        driver.acceptAll(0)
        let deadline = Instant(.seconds(5) + .milliseconds(milliseconds))
        #expect(driver.machine.nextDeadline == deadline)
        driver.pass(.milliseconds(milliseconds))
        #expect(driver.errors[0]?.reason == .timedOut(.firstByte))
    }

    /// No bytes flow while the server works on a large request: the minimum rate does not apply.
    @Test func theMinimumRateDoesNotApplyWhileTheResponseIsAwaited() throws {
        let driver = try upload(1_000_000, acceptsAll: true)
        driver.pass(200)
        driver.bytes(0, ok)
        #expect(driver.log.last == "0: 200 hi")
    }

    // MARK: Total time and minimum rate

    /// Delivers bytes of the response each second; returns the time of the failure.
    private func trickle(_ driver: HTTPClientDriver, _ rate: Int, seconds: Int) -> Nanoseconds? {
        for _ in 0..<seconds {
            driver.bytes(0, count: rate)
            driver.pass(1)
            if !driver.errors.isEmpty { return driver.now - .start }
        }
        return nil
    }

    @Test func aSmallExchangeEndsAfterNinetySeconds() throws {
        // With 65 536 bytes the exchange is large.
        for (requestBytes, isLarge) in [(535, false), (536, true)] {
            let driver = try upload(requestBytes, acceptsAll: true)
            driver.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: 65000\r\n\r\n")
            let failure = trickle(driver, 100, seconds: 200)
            #expect(driver.errors[0]?.reason == .timedOut(isLarge ? .rate : .exchange))
            #expect(failure == .seconds(isLarge ? 30 : 90))
        }
    }

    @Test func aLargeResponseHasNoTotalTimeButAMinimumRate() throws {
        for (rate, end) in [(1_000, nil as Nanoseconds?), (999, .seconds(30))] {
            let driver = try upload(200, acceptsAll: true)
            driver.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n")
            #expect(trickle(driver, rate, seconds: 300) == end)
            #expect(driver.errors[0]?.reason == end.map { _ in .timedOut(.rate) })
        }
    }

    /// Without Content-Length the size is known from the bytes received.
    @Test func aChunkedResponseIsLargeOnceItsBytesAre() throws {
        let driver = try upload(200, acceptsAll: true)
        driver.bytes(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n")
        #expect(trickle(driver, 1_000, seconds: 60) == nil)
        #expect(driver.machine.nextDeadline == Instant(.seconds(79)), "idle, before the total time")
        #expect(trickle(driver, 1_000, seconds: 200) == nil)
        let slow = try upload(200, acceptsAll: true)
        slow.bytes(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n")
        #expect(trickle(slow, 500, seconds: 200) == .seconds(90))
        #expect(slow.errors[0]?.reason == .timedOut(.exchange))
    }

    /// Accepts bytes of the request each second; returns the time of the failure.
    private func acceptSlowly(_ driver: HTTPClientDriver, _ rate: Int, seconds: Int) -> Nanoseconds? {
        for _ in 0..<seconds {
            driver.accept(0, rate)
            driver.pass(1)
            if !driver.errors.isEmpty { return driver.now - .start }
        }
        return nil
    }

    @Test func aLargeRequestHasNoTotalTimeButAMinimumRate() throws {
        let steady = try upload(1_000_000)
        #expect(acceptSlowly(steady, 1_000, seconds: 600) == nil)
        let slow = try upload(1_000_000)
        // A fast start does not help later windows.
        #expect(acceptSlowly(slow, 16_000, seconds: 29) == nil)
        #expect(acceptSlowly(slow, 900, seconds: 600) == .seconds(60))
        #expect(slow.errors[0]?.reason == .timedOut(.rate) && slow.errors[0]?.phase == .sent)
        let small = try upload(60_000)
        #expect(acceptSlowly(small, 600, seconds: 600) == .seconds(90))
        #expect(small.errors[0]?.reason == .timedOut(.exchange))
    }

    /// Both directions count: a server may respond while it reads.
    @Test func bytesOfAnEarlyResponseAreProgressOfTheUpload() throws {
        let driver = try upload(1_000_000)
        driver.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        #expect(trickle(driver, 1_000, seconds: 100) == nil)
        #expect(acceptSlowly(driver, 1_000, seconds: 110) == nil, "a silent response is not idle during the upload")
        driver.pass(30)
        #expect(driver.errors[0]?.reason == .timedOut(.upload) && driver.errors[0]?.phase == .responding)
    }

    @Test func anEarlyResponseMayPauseWhileTheSendBufferDrains() throws {
        let driver = try upload(150_000)
        driver.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        driver.acceptAll(0)
        #expect(driver.machine.nextDeadline == Instant(.seconds(180)), "150 000 bytes at 1 kB/s, and 30 s")
        driver.pass(179)
        driver.bytes(0, count: 50)
        #expect(driver.machine.nextDeadline == Instant(.seconds(199)))
        driver.pass(20)
        #expect(driver.errors[0]?.reason == .timedOut(.idle))
    }

    // MARK: Early responses

    @Test(arguments: [HTTPCloseReason.reset, .fin]) func anEarlyResponseEndsTheExchange(_ how: HTTPCloseReason) throws {
        let driver = try upload(1_000_000)
        driver.start("GET", "/next")
        driver.accept(0, 20_000)
        driver.log = []
        driver.bytes(0, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        #expect(driver.log == ["0: 413 ", "close 0!", "connect 1"])
        driver.closed(0, how)
        driver.accept(0, 10_000)
        driver.up(1)
        #expect(driver.log.suffix(2) == ["connect 1", "write 1"])
        #expect(driver.errors.isEmpty)
    }

    /// Whether the server has read a request whose bytes are still in the process is not known.
    @Test func aResponseBeforeTheAcceptanceOfASmallRequestClosesTheConnection() throws {
        let driver = try upload(500)
        driver.bytes(0, ok)
        #expect(driver.log.suffix(2) == ["0: 200 hi", "close 0!"])
    }

    @Test func aResponseThatBeganEarlyAndEndsAfterTheRequestKeepsTheConnection() throws {
        let driver = try upload(40_000)
        driver.bytes(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh")
        driver.acceptAll(0)
        driver.bytes(0, "i")
        #expect(driver.log.last == "0: 200 hi")
        driver.start()
        #expect(driver.log.last == "write 0")
    }

    @Test func anEarlyResponseThatEndsWithTheStreamIsComplete() throws {
        let driver = try upload(1_000_000)
        driver.bytes(0, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nno")
        driver.closed(0, .fin)
        #expect(driver.log.contains("0: 400 no"))
    }

    @Test func aResetDuringTheUploadIsAnErrorWithoutAResponse() throws {
        for text in ["", "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\n"] {
            let driver = try upload(1_000_000)
            driver.bytes(0, text)
            driver.closed(0, .reset)
            #expect(driver.errors[0]?.reason == .closedByPeer(.reset))
            #expect(driver.errors[0]?.phase == (text.isEmpty ? .sent : .responding))
        }
    }
}
