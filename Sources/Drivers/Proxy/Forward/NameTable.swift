internal import Determinism
internal import ForwardProxy
internal import NIOCore

/// The names that a forward proxy has looked up: one look-up at a time for each name, and a cache, as in a device's
/// resolver.
///
/// The queries and responses of a look-up (``RunningLookup``) are packets on the link of the connection that needs it.
/// Used on its proxy's event loop only.
final class NameTable {
    typealias Outcome = Result<[SocketAddress], ConnectFailure>

    private struct Entry {
        var outcome: DNSLookup.Outcome
        var expires: NIODeadline
    }

    private struct Running {
        var lookup: RunningLookup
        var waiting: [(DNSLookup.Outcome) -> Void]
    }

    /// The number of names in the cache; further answers are not kept.
    static let namesMax = 4_096
    /// The number of concurrent look-ups, each with two open files as a rule and four at most; further ones fail.
    static let lookupsMax = 100

    private var entries: [[UInt8]: Entry] = [:]
    private var running: [[UInt8]: Running] = [:]
    private let resolver: NameResolver
    private let files: ResolverFiles
    private let timeMax: TimeAmount

    /// - Parameter timeMax: The time limit of a look-up.
    init(within timeMax: TimeAmount, files: ResolverFiles, resolver: NameResolver = .shared) {
        self.timeMax = timeMax
        self.files = files
        self.resolver = resolver
    }

    /// Passes the addresses of a host to `done`, at once if they are in the cache, or if the host is an address,
    /// `localhost` or a name of the hosts file.
    ///
    /// - Parameters:
    ///   - name: The host that the client has named.
    ///   - target: The host that is looked up in its place.
    ///   - driver: The link that the queries and responses cross.
    ///   - answer: The answer that a rule gives in place of a name server.
    ///   - searches: Whether the domains of the search list are appended to the name.
    func look(
        up name: Destination, at target: Destination, on driver: LinkDriver, answer: NameAnswer? = nil,
        searches: Bool = true, _ done: @escaping (Outcome) -> Void
    ) {
        let finish: (DNSLookup.Outcome) -> Void = { done(Self.outcome($0, port: target.port)) }
        let known = addresses(of: target.host)
        if answer == nil, let known, addresses(of: name.host) != nil {
            return finish(DNSLookup.Outcome(addresses: known))
        }
        let key = Array("\(name.host) \(target.host) \(searches) \(answer.map { "\($0)" } ?? "")".utf8)
        if let entry = entries[key], entry.expires > .now() { return finish(entry.outcome) }
        if running[key] != nil {
            running[key]?.waiting.append(finish)
            return
        }
        guard running.count < Self.lookupsMax else { return done(.failure(.nameServerFailure)) }
        // A mapped name takes the time of a look-up, but no name server needs to know it.
        let fixed = answer ?? known.map { .addresses($0.map(\.bytes)) }
        var configuration = fixed == nil ? files.configuration : ResolverConfiguration()
        if !searches { configuration.searchList = [] }
        let lookup = RunningLookup(
            fixed == nil ? target.host : name.host, configuration, answer: fixed, on: driver, within: timeMax, resolver)
        running[key] = Running(lookup: lookup, waiting: [finish])
        lookup.start { self.complete(key, $0) }
    }

    /// Ends all look-ups; they fail.
    func stop() {
        for key in Array(running.keys) {
            running[key]?.lookup.cancel()
            complete(key, DNSLookup.Outcome(failure: .nameServerFailure))
        }
    }

    private func complete(_ key: [UInt8], _ outcome: DNSLookup.Outcome) {
        if outcome.timeToLive > .zero {
            let now = NIODeadline.now()
            if entries.count >= Self.namesMax { entries = entries.filter { $0.value.expires > now } }
            if entries.count < Self.namesMax {
                entries[key] = Entry(outcome: outcome, expires: now + .nanoseconds(outcome.timeToLive.count))
            }
        }
        for done in running.removeValue(forKey: key)?.waiting ?? [] { done(outcome) }
    }

    /// Returns the addresses of a host that needs no look-up; `nil` for others.
    private func addresses(of host: String) -> [IPAddress]? {
        if let found = NameResolver.immediate(Endpoint(host: host, port: 0)) {
            return found.compactMap { $0.ipAddress.flatMap { IPAddress($0) } }
        }
        let found = files.addresses(of: host)
        return found.isEmpty ? nil : found
    }

    private static func outcome(_ outcome: DNSLookup.Outcome, port: Int) -> Outcome {
        let addresses = outcome.addresses.compactMap { try? SocketAddress(ipAddress: $0.description, port: port) }
        return addresses.isEmpty ? .failure(outcome.failure ?? .nameNotFound) : .success(addresses)
    }
}
