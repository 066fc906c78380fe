internal import ForwardProxy
internal import NIOCore

/// The names that a forward proxy has looked up: one lookup at a time for each name, and a cache, as in a device's
/// resolver.
///
/// A lookup takes the time of the system's resolver and at least the delay of the conditions (`dnsDelay`); while the
/// link is out, its queries are lost. `getaddrinfo` reports no time to live, so an answer is used for ``cacheTime``.
/// Used on its proxy's event loop only.
final class NameTable {
    typealias Outcome = Result<[SocketAddress], ConnectFailure>

    private struct Entry {
        var addresses: [SocketAddress]
        var expires: NIODeadline
    }

    /// The time for which an answer is used.
    static let cacheTime = TimeAmount.seconds(60)
    /// The time after which a query without an answer is repeated.
    static let repetitionTime = TimeAmount.seconds(5)
    /// The number of names in the cache; further answers are not kept.
    static let namesMax = 4_096

    private var entries: [[UInt8]: Entry] = [:]
    private var waiting: [[UInt8]: [(Outcome) -> Void]] = [:]
    private let eventLoop: any EventLoop
    private let resolver: NameResolver
    private let timeMax: TimeAmount

    init(on eventLoop: any EventLoop, within timeMax: TimeAmount, resolver: NameResolver = .shared) {
        self.eventLoop = eventLoop
        self.timeMax = timeMax
        self.resolver = resolver
    }

    /// Passes the addresses of a host to `done`, at once if they are known or if the host is an address or `localhost`.
    ///
    /// - Parameters:
    ///   - name: The host that the client has named.
    ///   - target: The host that is looked up in its place.
    ///   - delay: The least time of a lookup.
    ///   - isLost: Returns whether a query is lost now. It is repeated after ``repetitionTime``, as by glibc's resolver.
    func look(
        up name: Destination, at target: Destination, delay: TimeAmount, isLost: @escaping () -> Bool,
        _ done: @escaping (Outcome) -> Void
    ) {
        let endpoint = Endpoint(host: target.host, port: target.port)
        let isImmediate = NameResolver.immediate(Endpoint(host: name.host, port: name.port)) != nil
        if isImmediate, let addresses = NameResolver.immediate(endpoint) { return done(.success(addresses)) }
        let key = Array("\(name.host) \(target.host)".utf8)
        if let entry = entries[key], entry.expires > .now() {
            return done(.success(Self.addresses(entry.addresses, port: target.port)))
        }
        let finish: (Outcome) -> Void = { done($0.map { Self.addresses($0, port: target.port) }) }
        if waiting[key] != nil {
            waiting[key]?.append(finish)
            return
        }
        waiting[key] = [finish]
        query(key, endpoint, delay: delay, isLost: isLost, until: .now() + timeMax)
    }

    private func query(
        _ key: [UInt8], _ endpoint: Endpoint, delay: TimeAmount, isLost: @escaping () -> Bool,
        until deadline: NIODeadline
    ) {
        if isLost() {
            let next = NIODeadline.now() + Self.repetitionTime
            eventLoop.assumeIsolated().scheduleTask(deadline: min(next, deadline)) {
                if next > deadline { return self.complete(key, .failure(.lookupTimeout)) }
                self.query(key, endpoint, delay: delay, isLost: isLost, until: deadline)
            }
            return
        }
        let readyAt = NIODeadline.now() + delay
        resolver.addresses(of: endpoint, within: timeMax, on: eventLoop).assumeIsolated().whenComplete { result in
            let outcome = result.mapError { Self.failure($0) }
            if readyAt <= .now() { return self.complete(key, outcome) }
            self.eventLoop.assumeIsolated().scheduleTask(deadline: readyAt) { self.complete(key, outcome) }
        }
    }

    private func complete(_ key: [UInt8], _ outcome: Outcome) {
        if case .success(let addresses) = outcome {
            let now = NIODeadline.now()
            if entries.count >= Self.namesMax { entries = entries.filter { $0.value.expires > now } }
            if entries.count < Self.namesMax {
                entries[key] = Entry(addresses: addresses, expires: now + Self.cacheTime)
            }
        }
        for done in waiting.removeValue(forKey: key) ?? [] { done(outcome) }
    }

    private static func addresses(_ addresses: [SocketAddress], port: Int) -> [SocketAddress] {
        addresses.map { address in
            var address = address
            address.port = port
            return address
        }
    }

    /// `getaddrinfo` names few causes: a name without an address, and a server that does not answer.
    private static func failure(_ error: any Error) -> ConnectFailure {
        guard let error = error as? ProxyError else { return .nameServerFailure }
        return switch error.lookupFailure {
        case .noAddress: .nameNotFound
        case .timeout: .lookupTimeout
        case .other, nil: .nameServerFailure
        }
    }
}
