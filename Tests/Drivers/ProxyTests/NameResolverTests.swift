import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// Lookups whose name server does not respond do not delay others.
@Suite(.tags(.gateways), .serialized, .timeLimit(.minutes(2))) struct NameResolverTests {
    /// A resolver whose lookups of `hangs*` end when ``release()`` is called.
    private final class HangingLookups: Sendable {
        private let gate = ConditionLock(value: 0)
        let count = NIOLockedValueBox(0)

        func addresses(of endpoint: Endpoint) throws -> [SocketAddress] {
            count.withLockedValue { $0 += 1 }
            if endpoint.host.hasPrefix("hangs") {
                gate.lock(whenValue: 1)
                gate.unlock()
            }
            return [try SocketAddress(ipAddress: "192.0.2.7", port: endpoint.port)]
        }

        func release() {
            gate.lock()
            gate.unlock(withValue: 1)
        }
    }

    private let loop = MultiThreadedEventLoopGroup.singleton.any()

    @Test func hangingLookupsBlockOneThreadPerNameAndNoOtherLookups() async throws {
        let lookups = HangingLookups()
        let resolver = NameResolver { try lookups.addresses(of: $0) }
        var hanging: [EventLoopFuture<[SocketAddress]>] = []
        for name in 0..<8 {
            for port in 1...50 {
                let endpoint = Endpoint(host: "hangs-\(name).test", port: port)
                hanging.append(resolver.addresses(of: endpoint, within: .hours(1), on: loop))
            }
        }
        let other = try await resolver.addresses(of: Endpoint(host: "other.test", port: 80), on: loop).get()
        #expect(other.first?.ipAddress == "192.0.2.7" && other.first?.port == 80)
        #expect(lookups.count.withLockedValue { $0 } <= 9, "callers of one name share a lookup")
        lookups.release()
        let ports = try await EventLoopFuture.whenAllSucceed(hanging, on: loop).get().compactMap { $0.first?.port }
        #expect(ports == (0..<8).flatMap { _ in Array(1...50) })
    }

    @Test func aNameBeyondTheLimitFailsAtOnce() async throws {
        let lookups = HangingLookups()
        let resolver = NameResolver { try lookups.addresses(of: $0) }
        let hanging = (0..<NameResolver.lookupsMax).map {
            resolver.addresses(of: Endpoint(host: "hangs-\($0).test", port: 1), within: .hours(1), on: loop)
        }
        await #expect(throws: ProxyError.self) {
            try await resolver.addresses(of: Endpoint(host: "one-more.test", port: 1), on: loop).get()
        }
        lookups.release()
        _ = try await EventLoopFuture.whenAllSucceed(hanging, on: loop).get()
        _ = try await resolver.addresses(of: Endpoint(host: "one-more.test", port: 1), on: loop).get()
    }

    @Test func aCallFailsAfterItsTimeLimit() async throws {
        let lookups = HangingLookups()
        let resolver = NameResolver { try lookups.addresses(of: $0) }
        do {
            _ = try await resolver.addresses(
                of: Endpoint(host: "hangs.test", port: 1), within: .milliseconds(20), on: loop
            ).get()
            Issue.record("the lookup did not time out")
        } catch let error as ProxyError {
            #expect(error.code == .cannotResolve && error.reason.contains("20 ms"))
        }
        lookups.release()
    }

    @Test(arguments: ["127.0.0.1", "::1", "localhost", "LOCALHOST"])
    func literalsAndLocalhostNeedNoLookup(_ host: String) async throws {
        let resolver = NameResolver { _ in throw IOError(errnoCode: 1, reason: "looked up") }
        let addresses = try await resolver.addresses(of: Endpoint(host: host, port: 7), on: loop).get()
        #expect(!addresses.isEmpty && addresses.allSatisfy { $0.port == 7 })
    }

    /// The first and third address do not respond, the second refuses: each is dialled before the first times out.
    @Test func theNextAddressIsTriedBeforeTheFirstHasTimedOut() async throws {
        let dialled = NIOLockedValueBox<[Int]>([])
        let failures = NIOLockedValueBox(0)
        let addresses = try (1...3).map { try SocketAddress(ipAddress: "192.0.2.1", port: $0) }
        let loop = loop
        let start = NIODeadline.now()
        try await loop.submit {
            let dial = UpstreamDial(
                addresses, within: .milliseconds(600), since: .now(), on: loop,
                connect: { address, timeLeft in
                    dialled.withLockedValue { $0.append(address.port ?? 0) }
                    let promise = loop.makePromise(of: (any Channel).self)
                    // The first and the third do not respond; the second refuses at once.
                    if address.port == 2 {
                        promise.fail(IOError(errnoCode: 111, reason: "connect"))
                    } else {
                        loop.scheduleTask(in: timeLeft) { promise.fail(ChannelError.connectTimeout(timeLeft)) }
                    }
                    return promise.futureResult
                },
                isNeeded: { true }, onFailure: { _ in failures.withLockedValue { $0 += 1 } })
            dial.start()
        }.get()
        try await eventually("the dial has failed") { failures.withLockedValue { $0 } == 1 }
        #expect(dialled.withLockedValue { $0 } == [1, 2, 3])
        #expect(NIODeadline.now() - start >= .milliseconds(590), "all addresses share one time limit")
    }

    /// A dial to a name with two addresses, of which one has a listener, with real sockets.
    @Test(arguments: [true, false]) func aProxyConnectsToTheAddressThatHasAListener(_ allowsFastPath: Bool) async throws
    {
        let (listener, port) = try TestSocket.listen()
        // localhost has two addresses; ::1 has no listener on this port.
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "localhost", port: port))
        configuration.allowsFastPath = allowsFastPath
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        try await blocking {
            let client = try TestSocket.connect(port: proxy.address.port)
            let server = try listener.accept()
            try client.send([1])
            #expect(try server.receive(exactly: 1) == [1])
        }
        await proxy.stop(grace: .zero)
    }
}
