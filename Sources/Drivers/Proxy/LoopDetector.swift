internal import NIOConcurrencyHelpers
internal import NIOCore

/// A detector of connections that return to a proxy through which they have passed: A -> A, or A -> B -> A. The
/// addresses used do not matter.
///
/// A proxy that dials a port on which a proxy of this process listens records the dial under its local port. The proxy
/// that accepts the connection looks the dial up under the client's port, and resets the connection if it has passed
/// through this proxy before; otherwise the loop would exhaust the process's file descriptors. Loops through other
/// processes are not detected.
final class LoopDetector: Sendable {
    static let shared = LoopDetector()
    /// The same for sessions of datagrams.
    static let datagrams = LoopDetector()

    /// The identity of a proxy in this process.
    typealias ProxyNumber = Int

    /// The record of a dial that may reach a proxy of this process; removed when its last reference is released.
    final class Dial: Sendable {
        fileprivate let localPort: Int
        private let number: Int
        /// The proxies through which the connection has passed; the last one dials.
        let passed: [ProxyNumber]
        private let detector: LoopDetector

        fileprivate init(localPort: Int, number: Int, passed: [ProxyNumber], _ detector: LoopDetector) {
            self.number = number
            self.localPort = localPort
            self.passed = passed
            self.detector = detector
        }

        deinit { detector.remove(localPort, number) }
    }

    private struct State {
        var lastProxy = 0
        /// The number of proxies that listen on each port, on any address.
        var listening: [Int: Int] = [:]
        /// The proxies through which a connection has passed, by the local port of its dial.
        var passed: [Int: (dial: Int, proxies: [ProxyNumber])] = [:]
        var lastDial = 0
    }

    private let state = NIOLockedValueBox(State())

    /// Returns an unused proxy number.
    func newProxy() -> ProxyNumber {
        state.withLockedValue { state in
            state.lastProxy += 1
            return state.lastProxy
        }
    }

    /// Records that a proxy listens on a port.
    func recordListening(_ port: Int) { state.withLockedValue { $0.listening[port, default: 0] += 1 } }

    /// Records that a proxy no longer listens on a port.
    func recordClosed(_ port: Int) {
        state.withLockedValue { state in
            let left = (state.listening[port] ?? 0) - 1
            state.listening[port] = left > 0 ? left : nil
        }
    }

    /// Returns whether a dial to a port may reach a proxy of this process and must be recorded before it connects.
    func mustRecord(_ port: Int?) -> Bool {
        guard let port else { return false }
        return state.withLockedValue { $0.listening[port] != nil }
    }

    /// Records a dial from a local port that is bound and not yet connected.
    func recordDial(from localPort: Int, passed: [ProxyNumber], by proxy: ProxyNumber) -> Dial {
        let passed = passed + [proxy]
        let number = state.withLockedValue { state in
            state.lastDial += 1
            state.passed[localPort] = (state.lastDial, passed)
            return state.lastDial
        }
        return Dial(localPort: localPort, number: number, passed: passed, self)
    }

    /// Removes a dial, unless its port has been reused.
    private func remove(_ localPort: Int, _ dial: Int) {
        state.withLockedValue { if $0.passed[localPort]?.dial == dial { $0.passed[localPort] = nil } }
    }

    /// Returns the proxies through which an accepted connection has passed, by its peer and local addresses.
    func passed(from peer: @autoclosure () -> SocketAddress?, to local: @autoclosure () -> SocketAddress?)
        -> [ProxyNumber]
    {
        if state.withLockedValue({ $0.passed.isEmpty }) { return [] }
        guard let peer = peer(), let port = peer.port, let passed = state.withLockedValue({ $0.passed[port]?.proxies }),
            let local = local(), Self.isSameMachine(peer, local)
        else { return [] }
        return passed
    }

    /// Returns whether both ends of a connection are on this machine: they have the same address, or the local one is a
    /// loopback address, to which the firewall may also redirect connections of the machine's other addresses.
    private static func isSameMachine(_ peer: SocketAddress, _ local: SocketAddress) -> Bool {
        guard let peer = host(peer), let local = host(local) else { return false }
        return peer == local || isLoopback(local)
    }

    /// Returns the numeric host; for an IPv4-mapped IPv6 address the IPv4 address.
    static func host(_ address: SocketAddress) -> String? {
        guard let text = address.ipAddress else { return nil }
        let mapped = "::ffff:"
        return text.hasPrefix(mapped) && text.contains(".") ? String(text.dropFirst(mapped.count)) : text
    }

    static func isLoopback(_ host: String) -> Bool { host == "::1" || host.hasPrefix("127.") }
}
