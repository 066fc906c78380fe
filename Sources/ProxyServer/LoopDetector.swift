internal import NIOConcurrencyHelpers
internal import NIOCore

/// Finds connections that come back to a proxy they have passed, whatever addresses they took: A -> A, or A -> B -> A.
///
/// A proxy that dials a port on which a proxy of this process listens records the dial by its own port; the proxy that accepts the
/// connection finds it by the client's. A connection that has passed a proxy before is refused: it would take every file of the
/// process. Proxies of other processes are not seen.
final class LoopDetector: Sendable {
    static let shared = LoopDetector()

    /// Names a proxy of the process.
    typealias ProxyNumber = Int

    /// A dial that may lead to a proxy of this process; forgotten with its last owner.
    final class Dial: Sendable {
        fileprivate let localPort: Int
        private let number: Int
        /// The proxies that the connection has passed, the dialling one last.
        let passed: [ProxyNumber]
        private let detector: LoopDetector

        fileprivate init(localPort: Int, number: Int, passed: [ProxyNumber], _ detector: LoopDetector) {
            self.number = number
            self.localPort = localPort
            self.passed = passed
            self.detector = detector
        }

        deinit { detector.forget(localPort, number) }
    }

    private struct State {
        var lastProxy = 0
        /// How many proxies listen on a port, at whatever address.
        var listening: [Int: Int] = [:]
        /// The proxies that a connection has passed, by the port it was dialled from.
        var passed: [Int: (dial: Int, proxies: [ProxyNumber])] = [:]
        var lastDial = 0
    }

    private let state = NIOLockedValueBox(State())

    /// A name for a proxy that nothing else has.
    func newProxy() -> ProxyNumber {
        state.withLockedValue { state in
            state.lastProxy += 1
            return state.lastProxy
        }
    }

    /// A proxy listens on a port.
    func recordListening(_ port: Int) { state.withLockedValue { $0.listening[port, default: 0] += 1 } }

    /// A proxy listens there no more.
    func recordClosed(_ port: Int) {
        state.withLockedValue { state in
            let left = (state.listening[port] ?? 0) - 1
            state.listening[port] = left > 0 ? left : nil
        }
    }

    /// Whether a dial to a port may lead to a proxy of this process, so that it must be recorded before it begins.
    func mustRecord(_ port: Int?) -> Bool {
        guard let port else { return false }
        return state.withLockedValue { $0.listening[port] != nil }
    }

    /// Records a dial from a local port that is bound and not connected yet.
    func recordDial(from localPort: Int, passed: [ProxyNumber], by proxy: ProxyNumber) -> Dial {
        let passed = passed + [proxy]
        let number = state.withLockedValue { state in
            state.lastDial += 1
            state.passed[localPort] = (state.lastDial, passed)
            return state.lastDial
        }
        return Dial(localPort: localPort, number: number, passed: passed, self)
    }

    /// Forgets a dial, unless its port is another's by now.
    private func forget(_ localPort: Int, _ dial: Int) {
        state.withLockedValue { if $0.passed[localPort]?.dial == dial { $0.passed[localPort] = nil } }
    }

    /// The proxies that a connection has passed, by the address it comes from and the one at which it was accepted.
    func passed(from peer: @autoclosure () -> SocketAddress?, to local: @autoclosure () -> SocketAddress?)
        -> [ProxyNumber]
    {
        if state.withLockedValue({ $0.passed.isEmpty }) { return [] }
        guard let peer = peer(), let port = peer.port, let passed = state.withLockedValue({ $0.passed[port]?.proxies }),
            let local = local(), Self.isSameMachine(peer, local)
        else { return [] }
        return passed
    }

    /// Whether a connection stays on this machine: both ends have the same address, or both the loopback's.
    private static func isSameMachine(_ peer: SocketAddress, _ local: SocketAddress) -> Bool {
        guard let peer = host(peer), let local = host(local) else { return false }
        return peer == local || (isLoopback(peer) && isLoopback(local))
    }

    /// A numeric host; an IPv4 address mapped into IPv6 as IPv4.
    static func host(_ address: SocketAddress) -> String? {
        guard let text = address.ipAddress else { return nil }
        let mapped = "::ffff:"
        return text.hasPrefix(mapped) && text.contains(".") ? String(text.dropFirst(mapped.count)) : text
    }

    static func isLoopback(_ host: String) -> Bool { host == "::1" || host.hasPrefix("127.") }
}
