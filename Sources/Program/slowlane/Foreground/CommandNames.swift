internal import CommandTraffic
internal import ForwardProxy
internal import NIOCore
internal import Proxy
internal import Synchronization

/// The names of a command in connect mode: answers of its look-ups, and the names of the addresses that it connects.
///
/// A host of `--map` gets an address of its own that no host has.
final class CommandNames: Sendable {
    private struct State {
        var hosts: [[UInt8]: String] = [:]
        var mapped: [String: [UInt8]] = [:]
    }

    /// The most addresses that are remembered.
    private static let addressesMax = 16_384
    /// The number of addresses in 198.18.0.0/15 (RFC 2544, for benchmarks).
    private static let mappedMax = 1 << 17

    private let proxy: Proxy
    private let rules: HostRules
    private let state = Mutex(State())

    init(_ proxy: Proxy, _ rules: HostRules) {
        self.proxy = proxy
        self.rules = rules
    }

    /// Answers a look-up.
    func answer(_ name: String) async -> NameAnswer {
        if isMapped(name) { return address(ofMapped: name).map { .addresses([$0]) } ?? .failure }
        switch await proxy.addresses(of: name) {
        case .success(let found):
            let addresses = found.compactMap { $0.ipAddress }.compactMap { IPAddress($0)?.bytes }
            record(addresses, name)
            return .addresses(addresses)
        case .failure(.nameNotFound): return .noSuchName
        case .failure(.lookupTimeout): return .nothing
        case .failure: return .failure
        }
    }

    /// Returns the destination of a call of connect(2): with the name for which the command got the address last.
    func destination(_ address: ConnectAddress) -> Destination {
        let name = state.withLock { $0.hosts[address.bytes] }
        return Destination(host: name ?? address.host, port: address.port)
    }

    /// Whether a map applies to a name on some port.
    private func isMapped(_ name: String) -> Bool {
        rules.maps.contains { map in
            var pattern = map.pattern
            pattern.port = nil
            return pattern.matches(Destination(host: name, port: 0))
        }
    }

    private func record(_ addresses: [[UInt8]], _ name: String) {
        state.withLock { state in
            if state.hosts.count >= Self.addressesMax {
                state.hosts = state.hosts.filter { state.mapped[$0.value] != nil }
            }
            // The name of a loopback address would be that of all servers on this machine.
            for address in addresses where address.first != 127 && address != IPAddress("::1")?.bytes {
                state.hosts[address] = name
            }
        }
    }

    private func address(ofMapped name: String) -> [UInt8]? {
        state.withLock { state in
            if let address = state.mapped[name] { return address }
            let number = state.mapped.count + 1
            guard number < Self.mappedMax else { return nil }
            let address = [198, UInt8(18 + number >> 16), UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)]
            state.mapped[name] = address
            state.hosts[address] = name
            return address
        }
    }
}
