internal import Foundation
internal import Synchronization

#if os(Linux)
internal import CRelay
#endif

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The supervisor of a command in connect mode: redirects TCP connections and connected UDP sockets of the command and of its
/// descendants to the proxy.
///
/// A call of connect(2) waits until the supervisor's thread has decided. To redirect it, the thread binds the command's
/// own socket to a port of the loopback interface, records the destination for this port, and connects the socket to the
/// proxy; so nothing is sent in band, and registrations of the socket with epoll stay valid. No decision waits for a
/// peer.
package final class ConnectSupervisor: Sendable {
    /// The destinations of a supervisor.
    package struct Destinations: Sendable {
        /// The proxy's port on 127.0.0.1.
        package var proxyPort: Int
        /// The name server to which resolvers are redirected; `nil` for none.
        package var nameServer: NameServer?
        /// Records a destination before the connection from a port of the loopback interface begins.
        package var record: @Sendable (ConnectAddress, _ port: Int) -> Void
        /// Removes the record of a port whose connection has failed.
        package var remove: @Sendable (_ port: Int) -> Void
        /// Returns whether a destination is connected without the proxy.
        package var isBypassed: @Sendable (ConnectAddress) -> Bool
        /// Returns whether the proxy connects another destination in place of this one.
        package var isMapped: @Sendable (ConnectAddress) -> Bool
        /// Returns the port on 127.0.0.1 whose datagrams go to a destination; `nil` if there is none.
        package var datagramPort: @Sendable (ConnectAddress) -> Int?

        package init(
            proxyPort: Int, nameServer: NameServer? = nil,
            record: @escaping @Sendable (ConnectAddress, _ port: Int) -> Void,
            remove: @escaping @Sendable (_ port: Int) -> Void,
            isBypassed: @escaping @Sendable (ConnectAddress) -> Bool = { _ in false },
            isMapped: @escaping @Sendable (ConnectAddress) -> Bool = { _ in false },
            datagramPort: @escaping @Sendable (ConnectAddress) -> Int? = { _ in nil }
        ) {
            self.proxyPort = proxyPort
            self.nameServer = nameServer
            self.record = record
            self.remove = remove
            self.isBypassed = isBypassed
            self.isMapped = isMapped
            self.datagramPort = datagramPort
        }
    }

    private struct State {
        var counts = ConnectCounts()
        var isStopped = false
    }

    private let state = Mutex(State())

    /// The calls that were not redirected.
    package var counts: ConnectCounts { state.withLock { $0.counts } }

    #if os(Linux)
    private static let dnsPort = 53
    private let calls: CInt
    /// The write end wakes the thread.
    private let wakeup: (read: CInt, write: CInt)
    private let destinations: Destinations
    private let ended = DispatchSemaphore(value: 0)

    /// Starts a supervisor, which owns the descriptor of the calls.
    init?(calls: CInt, _ destinations: Destinations) {
        self.calls = calls
        self.destinations = destinations
        var ends: [CInt] = [-1, -1]
        let isOpen = pipe(&ends) == 0
        wakeup = (ends[0], ends[1])
        guard isOpen else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        Thread.detachNewThread { [self] in
            while decideNext() {}
            ended.signal()
        }
    }

    deinit {
        let files = state.withLock { $0.isStopped } ? [] : [calls]
        for file in files + [wakeup.read, wakeup.write] where file >= 0 { close(file) }
    }

    /// Ends the decisions, and returns whether processes are left whose calls will fail with ENOSYS from now on,
    /// because the kernel keeps the filter. May be called once.
    package func stop() -> Bool {
        _ = write(wakeup.write, "x", 1)
        ended.wait()
        destinations.nameServer?.stop()
        var file = pollfd(fd: calls, events: Int16(POLLIN), revents: 0)
        let areLeft = poll(&file, 1, 0) >= 0 && Int32(file.revents) & POLLHUP == 0
        state.withLock { $0.isStopped = true }
        // The kernel ends the calls that wait.
        close(calls)
        return areLeft
    }

    /// Waits for a call and decides it. Returns `false` at the end.
    private func decideNext() -> Bool {
        var files = [
            pollfd(fd: calls, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wakeup.read, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&files, 2, -1) >= 0 else { return errno == EINTR }
        if files[1].revents != 0 { return false }
        // No process is left.
        if Int32(files[0].revents) & POLLIN == 0 { return false }
        var call = crelay_call()
        if crelay_call_receive(calls, &call) == 0 { decide(call) }
        return true
    }

    private func decide(_ call: crelay_call) {
        let bytes = addressBytes(of: call)
        if destinations.nameServer != nil && ConnectAddress.isNameService(bytes) {
            // The C library then asks a name server.
            return crelay_call_end(calls, call.id, ENOENT)
        }
        guard let address = ConnectAddress(bytes), let socket = socket(of: call) else {
            return crelay_call_continue(calls, call.id)
        }
        defer { close(socket) }
        var properties = crelay_socket()
        guard crelay_socket_properties(socket, &properties) == 0 else {
            return crelay_call_continue(calls, call.id)
        }
        if properties.is_datagram != 0 && address.port == Self.dnsPort, let server = destinations.nameServer {
            // First the port, which also lets a socket of IPv6 only reach the address.
            let port = crelay_bind_loopback(socket, properties.is_ipv6)
            if port > 0 && crelay_connect_loopback(socket, properties.is_ipv6, CInt(server.port)) == 0 {
                server.record(address, resolverPort: Int(port))
                return crelay_call_end(calls, call.id, 0)
            }
        }
        if properties.is_datagram != 0 && address.port != 0 {
            if redirectDatagrams(socket, address, isIPv6: properties.is_ipv6, call) { return }
            state.withLock { $0.counts.datagramSockets[address.port, default: 0] += 1 }
        }
        // The kernel reports the error of a socket that is connected, or that has another family.
        guard properties.is_unconnected != 0, (properties.is_ipv6 != 0) == address.isIPv6Family,
            isRedirected(address)
        else { return crelay_call_continue(calls, call.id) }
        redirect(socket, address, isIPv6: properties.is_ipv6, call)
    }

    private func isRedirected(_ address: ConnectAddress) -> Bool {
        if address.isLoopback && address.port == destinations.proxyPort { return false }
        if destinations.isBypassed(address) { return false }
        guard address.isLoopback, !destinations.isMapped(address), !Self.hasListener(address) else { return true }
        // The kernel refuses the connection, so that the caller tries its next address.
        state.withLock { $0.counts.refused += 1 }
        return false
    }

    /// Connects a UDP socket to the port of its destination. Returns `false` if the kernel decides.
    private func redirectDatagrams(_ socket: CInt, _ address: ConnectAddress, isIPv6: CInt, _ call: crelay_call) -> Bool
    {
        guard (isIPv6 != 0) == address.isIPv6Family, !destinations.isBypassed(address) else { return false }
        // Resolvers connect sockets to find out whether there is a route to an address.
        if !destinations.isMapped(address) {
            guard let probe = LoopbackSocket.connectDatagrams(to: address) else { return false }
            close(probe)
        }
        guard let port = destinations.datagramPort(address) else { return false }
        // With a port, a socket of IPv6 only also reaches the address. A socket that has one keeps it.
        _ = crelay_bind_loopback(socket, isIPv6)
        guard crelay_connect_loopback(socket, isIPv6, CInt(port)) == 0 else { return false }
        crelay_call_end(calls, call.id, 0)
        return true
    }

    private func redirect(_ socket: CInt, _ address: ConnectAddress, isIPv6: CInt, _ call: crelay_call) {
        let port = crelay_bind_loopback(socket, isIPv6)
        guard port > 0 else { return crelay_call_end(calls, call.id, errno) }
        destinations.record(address, Int(port))
        let code = crelay_connect_loopback(socket, isIPv6, CInt(destinations.proxyPort))
        if code != 0 && code != EINPROGRESS { destinations.remove(Int(port)) }
        if code == EINPROGRESS && crelay_is_nonblocking(socket) == 0 {
            // The caller's own call waits for the connection that has begun, with the caller's time limit.
            crelay_call_continue(calls, call.id)
        } else {
            crelay_call_end(calls, call.id, code)
        }
    }

    /// Returns the address argument; empty if it cannot be read, so that the kernel decides about it.
    private func addressBytes(of call: crelay_call) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: min(Int(clamping: call.length), ConnectAddress.lengthMax))
        let count = crelay_read_memory(call.thread, call.address, &bytes, bytes.count)
        if count == bytes.count { return bytes }
        if count < 0 && errno == EPERM { recordUnreadable() }
        return []
    }

    /// Returns a copy of the caller's socket; `nil` if there is none.
    private func socket(of call: crelay_call) -> CInt? {
        let thread = crelay_open_thread(call.thread)
        guard thread >= 0 else { return nil }
        defer { close(thread) }
        // Otherwise the number may belong to another thread, and so may the memory that was read.
        guard crelay_call_is_valid(calls, call.id) != 0 else { return nil }
        let socket = crelay_copy_descriptor(thread, call.socket)
        if socket < 0 && errno == EPERM { recordUnreadable() }
        return socket < 0 ? nil : socket
    }

    private func recordUnreadable() { state.withLock { $0.counts.unreadable += 1 } }

    /// Returns whether a socket of this machine listens on an address of the loopback interface; `true` if that
    /// cannot be read.
    private static func hasListener(_ address: ConnectAddress) -> Bool {
        let tables = address.bytes.count == 4 ? ["/proc/net/tcp", "/proc/net/tcp6"] : ["/proc/net/tcp6"]
        var isReadable = false
        for path in tables {
            guard let file = fopen(path, "re") else { continue }
            defer { fclose(file) }
            isReadable = true
            var line = [CChar](repeating: 0, count: 512)
            // The first line has the titles.
            guard fgets(&line, CInt(line.count), file) != nil else { continue }
            while fgets(&line, CInt(line.count), file) != nil {
                let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                guard ListenerTable.isListener(text) else { break }
                if ListenerTable.accepts(text, address) { return true }
            }
        }
        return !isReadable
    }
    #else
    /// There are no supervisors on this system.
    init?(calls: CInt, _ destinations: Destinations) { nil }

    package func stop() -> Bool { false }
    #endif
}
