internal import Determinism
internal import Impairment
internal import LinkModel
internal import NIOConcurrencyHelpers
internal import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension RelayPortConfiguration {
    /// Creates the configuration of a proxy's port at the relays.
    ///
    /// - Parameters:
    ///   - admission: The admission of a forward proxy's clients; `nil` for a proxy of one upstream.
    ///   - onLoop: Called for a connection that has passed the proxy before.
    init(
        _ configuration: ProxyConfiguration, proxy: LoopDetector.ProxyNumber, addresses: [SocketAddress]?,
        slots: ConnectionSlots, numbers: ConnectionNumbers, seed: UInt64,
        admission: NIOLockedValueBox<ForwardAdmission>?, tunnels: TunnelCallbacks?,
        resolveUpstream: @escaping @Sendable (RelayToken) -> Void,
        onLoop: @escaping @Sendable () -> Void,
        onDialFailed: @escaping @Sendable (any Error) -> Void,
        onAcceptPaused: @escaping @Sendable (IOError?) -> Void,
        onClosed: (@Sendable (RelayToken, PerDirection<Int>) -> Void)? = nil
    ) {
        let (limits, keepAlive) = (configuration.buffers, configuration.keepAlive)
        self.init(
            addresses: addresses, connectTimeout: configuration.connectTimeout,
            attemptDelay: UpstreamDial.attemptDelay,
            resetsClientOnDialFailure: configuration.unreachableUpstream == .reset, slots: slots, numbers: numbers,
            seed: seed,
            bytesHeldMax: { limits.bytesMax(connections: slots.count) },
            admit: { client in
                let passed = LoopDetector.shared.passed(
                    from: try? SystemSocket.remoteAddress(of: client),
                    to: try? SystemSocket.localAddress(of: client))
                if passed.contains(proxy) {
                    onLoop()
                    return nil
                }
                var admitted = Admission()
                admitted.proxiesPassed = passed
                guard let admission else { return admitted }
                admitted.tunnel = admission.withLockedValue { $0 }.request(of: client)
                return admitted.tunnel == nil ? nil : admitted
            },
            tunnels: tunnels,
            configureUpstreamSocket: { keepAlive.apply(to: $0) },
            recordDial: { server, address, passed in
                let mayReturn = admission?.withLockedValue { $0.dialsMayReturn } ?? false
                return Self.recordDial(server, to: address, mayReturn: mayReturn, passed: passed, by: proxy)
            },
            resolveUpstream: resolveUpstream, onDialFailed: onDialFailed, onAcceptPaused: onAcceptPaused,
            onClosed: onClosed)
    }

    /// Binds the socket of a dial that may lead to a proxy of this process, and records its local port.
    private static func recordDial(
        _ server: CInt, to address: SocketAddress, mayReturn: Bool, passed: [LoopDetector.ProxyNumber],
        by proxy: LoopDetector.ProxyNumber
    ) -> LoopDetector.Dial? {
        guard mayReturn || (Proxy.isOnThisMachine(address) && LoopDetector.shared.mustRecord(address.port)),
            let any = address.wildcard,
            any.withSockAddr({ bind(server, $0, socklen_t($1)) }) == 0,
            let port = (try? SystemSocket.localAddress(of: server))?.port
        else { return nil }
        return LoopDetector.shared.recordDial(from: port, passed: passed, by: proxy)
    }
}

extension ConnectionStatus {
    /// Describes a connection that a relay forwards.
    init(_ relayed: RelayedConnectionStatus) {
        self.init(
            id: ConnectionID(carrier: .relay(relayed.token)), number: relayed.number,
            client: relayed.client.map(Endpoint.init(_:)), serverName: nil,
            age: Nanoseconds((NIODeadline.now() - relayed.startedAt).nanoseconds),
            bytesRead: relayed.bytesRead, bytesHeld: relayed.bytesHeld)
    }
}
