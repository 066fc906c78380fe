import Determinism
import Impairment
import LinkModel
import TestSupport
import Testing

@testable import Proxy

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

private let outage = Conditions(up: DirectionConditions(loss: .one), down: DirectionConditions(loss: .one))
private let refusal = Conditions(up: .clear, down: .clear, connectionPolicy: .offline)

/// A timeline that starts with the proxy changes the treatment of new connections although nothing is connected.
///
/// The tests open no connection and read no status before the change is due: either would make the proxy process what
/// is due.
@Suite(.tags(.proxies), .timeLimit(.minutes(2))) struct ProxyTimelineTests {
    private static let changeTime = Nanoseconds.milliseconds(100)
    /// The time after which the change has happened even on a busy machine.
    private static let checkTime = Duration.seconds(1)

    /// Runs `body` with a proxy whose conditions change once.
    private static func withChange(
        from first: Conditions, to second: Conditions, _ method: SYNDropMethod? = nil,
        _ body: @escaping (Proxy, TestSocket) async throws -> Void
    ) async throws {
        let timeline = try Timeline([
            Timeline.Entry(at: .zero, .hold(Timeline.NamedConditions("first", first))),
            Timeline.Entry(at: changeTime, .hold(Timeline.NamedConditions("second", second))),
        ])
        try await withProxy(.clear, synDropMethod: method, { $0.timeline = timeline }, body)
    }

    private static func connectAndExchange(_ proxy: Proxy, _ listener: TestSocket) async throws {
        try await blocking {
            let client = try TestSocket.connect(port: proxy.address.port)
            let server = try listener.accept()
            try client.send([1])
            #expect(try server.receive(exactly: 1) == [1])
        }
    }

    /// The kernel repeats a SYN that was dropped after a second, when the outage is over.
    @Test(arguments: synDropMethods) func anOutageAtTheStartEnds(_ method: SYNDropMethod) async throws {
        try await Self.withChange(from: outage, to: .clear, method) { proxy, listener in
            try await Self.connectAndExchange(proxy, listener)
        }
    }

    @Test(arguments: synDropMethods) func anOutageBegins(_ method: SYNDropMethod) async throws {
        try await Self.withChange(from: .clear, to: outage, method) { proxy, _ in
            try await Task.sleep(for: Self.checkTime)
            await #expect(throws: TestSocket.Failure(call: "connect", code: EINPROGRESS)) {
                _ = try await blocking { try TestSocket.connect(port: proxy.address.port, within: 150) }
            }
        }
    }

    @Test func aRefusalBegins() async throws {
        try await Self.withChange(from: .clear, to: refusal) { proxy, _ in
            try await Task.sleep(for: Self.checkTime)
            await #expect(throws: TestSocket.Failure(call: "connect", code: ECONNREFUSED)) {
                _ = try await blocking { try TestSocket.connect(port: proxy.address.port) }
            }
        }
    }

    @Test func aRefusalAtTheStartEnds() async throws {
        try await Self.withChange(from: refusal, to: .clear) { proxy, listener in
            try await Task.sleep(for: Self.checkTime)
            try await Self.connectAndExchange(proxy, listener)
        }
    }
}
