import Determinism
import NIOCore
import Testing

@testable import Wire

/// Exchanges of different pools share nothing.
@Suite struct HTTPClientPoolTests {
    private let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    @Test func noExchangeWaitsForAnotherPool() {
        let driver = HTTPClientDriver()
        driver.acceptsAll = false
        driver.start("PUT", "/large", body: Array(repeating: 7, count: 1_000_000))
        driver.up(0)
        driver.start("GET", "/small", pool: 1)
        #expect(driver.log.last == "connect 1")
        driver.up(1)
        driver.acceptAll(1)
        driver.bytes(1, ok)
        #expect(driver.log.last == "1: 200 hi")
    }

    @Test func aConnectionServesOnlyThePoolOfItsFirstExchange() {
        let driver = HTTPClientDriver()
        driver.start("GET", "/a", pool: 1)
        driver.up(0)
        driver.bytes(0, ok)
        driver.start("GET", "/b", pool: 2)
        #expect(driver.log.last == "connect 1", "connection 0 is idle, but of pool 1")
        driver.start("GET", "/c", pool: 1)
        #expect(driver.log.last == "write 0")
    }

    @Test func theMaximumNumberOfConnectionsCountsPerPool() {
        let driver = HTTPClientDriver(connectionsMax: 2)
        for pool in [0, 0, 0, -5, -5, -5] { driver.start("GET", "/", pool: pool) }
        #expect(driver.log == ["connect 0", "connect 1", "connect 2", "connect 3"])
        let one = HTTPClientDriver()
        one.machine = HTTPClientMachine(host: "h")
        for _ in 0..<3 { one.start() }
        #expect(one.log == ["connect 0"], "the default is 1")
    }

    @Test func aRefusedConnectionFailsTheOldestExchangeOfItsPool() {
        let driver = HTTPClientDriver()
        driver.start("GET", "/a", pool: 1)
        driver.start("GET", "/b", pool: 2)
        driver.start("GET", "/c", pool: 2)
        driver.refused(1)
        #expect(driver.errors.keys.sorted() == [1])
        #expect(driver.errors[1]?.reason == .connect(.refused))
        #expect(driver.log.last == "connect 2", "for the next exchange of pool 2")
    }

    @Test func aConnectTimeoutFailsTheOldestExchangeOfItsPool() {
        let driver = HTTPClientDriver()
        driver.start("GET", "/a", pool: 1)
        driver.pass(4)
        driver.start("GET", "/b", pool: 2)
        driver.up(0)
        driver.pass(10)
        #expect(driver.errors.keys.sorted() == [1])
        #expect(driver.errors[1]?.reason == .timedOut(.connect))
        #expect(driver.machine.nextDeadline == Instant(.seconds(34)))
    }

    /// Otherwise a caller with a new pool per account would leave them behind.
    @Test func unusedPoolsAreRemoved() {
        let driver = HTTPClientDriver()
        for pool in 0..<50 { driver.start("GET", "/", pool: pool) }
        for pool in 0..<25 { driver.up(pool) }
        for pool in 0..<25 { driver.bytes(pool, ok) }
        for pool in 25..<50 { driver.feed { $0.cancel(HTTPExchangeID(number: pool), at: driver.now) } }
        #expect(driver.machine.poolCount == 50)
        driver.pass(15)
        #expect(driver.machine.poolCount == 0)
        #expect(driver.machine.nextDeadline == nil)
    }
}
