import Client
import Determinism
import HTTPSockets
import Scenario
import Testing
import Worlds

@testable import Impairment
@testable import LiveWorld
@testable import Wire

/// The events of a client and of its proxy, in the orders in which their threads may report them.
@Suite struct DeviceLedgerTests {
    private static let client = HTTPConnectionID(number: 0)
    private static let port = 40_000

    /// A device whose client has opened a connection.
    private struct Device {
        var ledger = DeviceLedger("ada")
        var recorder = HistoryRecorder()
        private var process = 0

        init() {
            recorder.record(.phase(.script), at: .start)
            process = ledger.begin(.current)
            _ = client(.attempted(DeviceLedgerTests.client))
            _ = client(.connected(DeviceLedgerTests.client, localPort: DeviceLedgerTests.port))
        }

        mutating func client(_ activity: ClientChannels.Activity) -> [String] {
            ledger.connection(activity, process: process, &recorder).map { "\($0)" }
        }

        mutating func read(_ bytes: Int) -> [String] { client(.read(DeviceLedgerTests.client, bytes: bytes)) }

        mutating func proxy(_ event: ExchangeEvent, port: Int = DeviceLedgerTests.port) -> [String] {
            ledger.exchange(event, port: port, &recorder).map { "\($0)" }
        }

        mutating func request(_ number: Int, port: Int = DeviceLedgerTests.port) throws {
            let head = try HTTPRequestHead(method: "GET", target: "/")
            _ = proxy(.requested(ExchangeID(number: number), head, body: [], subject: nil), port: port)
        }

        mutating func deliver(_ number: Int, end: Int64, port: Int = DeviceLedgerTests.port) -> [String] {
            proxy(.responseDelivered(ExchangeID(number: number), status: 200, end: end), port: port)
        }
    }

    @Test func aResponseIsReceivedWhenTheClientHasReadItsLastByte() throws {
        var device = Device()
        try device.request(0)
        #expect(device.deliver(0, end: 100).isEmpty)
        #expect(device.read(60).isEmpty)
        #expect(device.read(40) == ["request 0 response received 200"])
        #expect(device.client(.ended(Self.client)) == ["ada connection 0 ended"])
    }

    @Test func aResponseThatIsReadFirstIsReceivedWhenTheProxyReportsItsDelivery() throws {
        var device = Device()
        try device.request(0)
        #expect(device.read(100).isEmpty)
        #expect(device.deliver(0, end: 100) == ["request 0 response received 200"])
    }

    /// The last byte arrives in the instant of the time-out: the client closes its socket without having read it.
    @Test func aResponseThatIsDeliveredAtTheTimeoutOfTheClientIsNotReceived() throws {
        var device = Device()
        try device.request(0)
        #expect(device.read(99).isEmpty)
        #expect(device.deliver(0, end: 100).isEmpty)
        #expect(
            device.client(.ended(Self.client)) == ["ada connection 0 ended", "request 0 failed"])
        #expect(device.read(1).isEmpty)
    }

    @Test func aResponseThatIsDeliveredAfterTheEndOfTheConnectionIsNotReceived() throws {
        var device = Device()
        try device.request(0)
        #expect(
            device.client(.ended(Self.client)) == ["ada connection 0 ended", "request 0 failed"])
        #expect(device.deliver(0, end: 100).isEmpty)
    }

    @Test func responsesOfAConnectionAreReceivedInOrder() throws {
        var device = Device()
        try device.request(0)
        #expect(device.deliver(0, end: 100).isEmpty)
        try device.request(1)
        #expect(device.deliver(1, end: 250).isEmpty)
        #expect(device.read(249) == ["request 0 response received 200"])
        #expect(device.read(1) == ["request 1 response received 200"])
    }

    /// A request past the client's queue has a connection of its own, of which the client reports nothing.
    @Test func aResponseOfAnotherConnectionIsReceivedWhenItIsDelivered() throws {
        var device = Device()
        try device.request(0, port: 50_000)
        #expect(device.deliver(0, end: 100, port: 50_000) == ["request 0 response received 200"])
    }
}
