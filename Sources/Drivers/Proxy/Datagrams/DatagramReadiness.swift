#if os(Linux)
internal import CRelay
internal import NIOConcurrencyHelpers
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A thread that waits until sockets of datagrams are readable, for all ports of the process; NIO has no API for sockets
/// that it does not own. The event loop of a port reads them, and then watches them again.
final class DatagramReadiness: Sendable {
    /// A registered port.
    typealias Port = UInt32

    private struct State {
        var last: Port = 0
        var ports: [Port: @Sendable ([Int]) -> Void] = [:]
    }

    private let state = NIOLockedValueBox(State())
    private let epoll: CInt

    private static let eventsMax = 256

    /// The readiness of the process's sockets, or the error that prevents it.
    static let shared = Result { try DatagramReadiness() }

    private init() throws {
        epoll = crelay_epoll_create()
        guard epoll >= 0 else { throw IOError(errnoCode: errno, reason: "epoll_create1") }
        var thread = pthread_t()
        let start = Unmanaged.passRetained(self)
        let code = pthread_create(
            &thread, nil,
            { argument in
                crelay_name_thread("slowlane-udp")
                Unmanaged<DatagramReadiness>.fromOpaque(argument!).takeRetainedValue().run()
            }, start.toOpaque())
        guard code == 0 else {
            start.release()
            SystemSocket.close(epoll)
            throw IOError(errnoCode: code, reason: "pthread_create")
        }
        pthread_detach(thread)
    }

    /// Registers a port. `ready` is called on the thread with the indices of sockets that are readable.
    func register(_ ready: @escaping @Sendable ([Int]) -> Void) -> Port {
        state.withLockedValue { state in
            state.last &+= 1
            state.ports[state.last] = ready
            return state.last
        }
    }

    func unregister(_ port: Port) { state.withLockedValue { $0.ports[port] = nil } }

    /// Reports once that a socket is readable. A closed descriptor is no longer watched.
    func watch(_ descriptor: CInt, of port: Port, index: Int, isNew: Bool) -> Bool {
        crelay_epoll_watch_once(epoll, descriptor, UInt64(port) << 32 | UInt64(index), isNew ? 1 : 0) == 0
    }

    private func run() -> Never {
        var events = [crelay_event](repeating: crelay_event(), count: Self.eventsMax)
        var ready: [Port: [Int]] = [:]
        while true {
            let count = crelay_epoll_wait(epoll, &events, CInt(events.count), -1)
            for event in events.prefix(Int(max(0, count))) {
                ready[Port(truncatingIfNeeded: event.token >> 32), default: []].append(Int(event.token & 0xFFFF_FFFF))
            }
            for (port, indices) in ready {
                let call = state.withLockedValue { $0.ports[port] }
                call?(indices)
            }
            ready.removeAll(keepingCapacity: true)
        }
    }
}
#endif
