import Foundation
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A blocking TCP socket on the loopback interface: the peer of a proxy or server under test, without SwiftNIO.
///
/// Calls time out after a minute, so that a hang is a failure.
public final class TestSocket: Sendable {
    private let descriptor: CInt

    /// A failed system call.
    public struct Failure: Error, Equatable, CustomStringConvertible {
        public let call: String
        public let code: CInt

        public init(call: String, code: CInt) {
            self.call = call
            self.code = code
        }

        public var description: String { "\(call): \(String(cString: strerror(code)))" }
    }

    private init(_ descriptor: CInt) {
        self.descriptor = descriptor
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var on: CInt = 1
        setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
    }

    deinit { _ = systemClose(descriptor) }

    /// Connects to a port of the loopback interface; fails with EINPROGRESS after `milliseconds` without a response.
    ///
    /// - Parameter own: The local port; 0 for a free one.
    public static func connect(
        port: Int, from own: Int = 0, within milliseconds: Int = 10_000
    ) throws -> TestSocket {
        let socket = TestSocket(makeDescriptor())
        if own > 0, !bindLoopback(socket.descriptor, own) { throw Failure(call: "bind", code: errno) }
        var limit = timeval(tv_sec: milliseconds / 1000, tv_usec: .init(milliseconds % 1000 * 1000))
        setsockopt(socket.descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = loopback(port)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                systemConnect(socket.descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        let code = result == 0 ? 0 : errno == EINTR ? socket.endOfConnecting(within: milliseconds) : errno
        guard code == 0 else { throw Failure(call: "connect", code: code) }
        limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(socket.descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        return socket
    }

    /// Waits for the end of a handshake that continues after `connect` was interrupted by a signal, and returns its error.
    private func endOfConnecting(within milliseconds: Int) -> CInt {
        guard isReady(for: POLLOUT, within: milliseconds) else { return EINPROGRESS }
        var code: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
        return code
    }

    /// Waits until a port refuses connections, for a minute at most. A connection that is accepted meanwhile is reset: after a
    /// FIN it would await a response.
    public static func waitForRefusal(port: Int) throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            do { try connect(port: port).reset() } catch let failure as Failure where failure.code == ECONNREFUSED {
                return
            } catch let failure as Failure where failure.code == ECONNRESET {
                // The listener was closed during the handshake.
            }
            guard ContinuousClock.now < deadline else { throw Failure(call: "wait for a refusal", code: ETIMEDOUT) }
            usleep(2000)
        }
    }

    /// Listens on a port of the loopback interface; 0 picks a free port.
    public static func listen(on port: Int = 0, backlog: CInt = 1024) throws -> (socket: TestSocket, port: Int) {
        let socket = TestSocket(makeDescriptor())
        var on: CInt = port == 0 ? 0 : 1
        setsockopt(socket.descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<CInt>.size))
        var address = loopback(port)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(socket.descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                    && systemListen(socket.descriptor, backlog) == 0
            }
        }
        guard result else { throw Failure(call: "listen", code: errno) }
        return (socket, socket.localPort)
    }

    /// The local port.
    public var localPort: Int {
        var address = Self.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
        }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    /// Returns whether a descriptor is a connection that a listener of this process has accepted on a port.
    public static func isAccepted(_ descriptor: CInt, on port: Int) -> Bool {
        var address = loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                guard getsockname(descriptor, name, &size) == 0 else { return false }
                let isPort = UnsafeRawPointer(name).load(as: sockaddr_in.self).sin_port == UInt16(port).bigEndian
                return isPort && getpeername(descriptor, name, &size) == 0
            }
        }
    }

    /// The ports of one process: test processes run beside each other, and a test may use its port long after it was
    /// found free. A UDP socket on the first port of the block reserves the block as long as the process runs.
    private struct PortBlock {
        /// All blocks are below Linux's `ip_local_port_range`, so that the system does not assign their ports to port 0.
        static let all = 20_000..<32_000
        static let size = 400

        let first: Int
        var used = 0

        /// Reserves the first free block.
        init() throws {
            for first in stride(from: Self.all.lowerBound, to: Self.all.upperBound, by: Self.size) {
                let descriptor = makeDescriptor(SOCK_DGRAM)
                // A child process must not keep the block.
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                if bindLoopback(descriptor, first) {
                    // The descriptor is never closed.
                    self.first = first
                    return
                }
                _ = systemClose(descriptor)
            }
            throw Failure(call: "bind", code: EADDRINUSE)
        }
    }

    private static let ports = Mutex<PortBlock?>(nil)

    private static func bindLoopback(_ descriptor: CInt, _ port: Int) -> Bool {
        var address = loopback(port)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    /// Returns a free port that no other test is given before all ports of this process have been used.
    public static func unusedPort() throws -> Int {
        try ports.withLock { ports in
            var block = try ports ?? PortBlock()
            defer { ports = block }
            for _ in 0..<PortBlock.size {
                let port = block.first + block.used
                block.used = (block.used + 1) % PortBlock.size
                let socket = TestSocket(makeDescriptor())
                if withExtendedLifetime(socket, { bindLoopback(socket.descriptor, port) }) { return port }
            }
            throw Failure(call: "bind", code: EADDRINUSE)
        }
    }

    /// Returns whether no datagram socket has a port of 127.0.0.1.
    public static func isFreeForDatagrams(_ port: Int) -> Bool {
        let socket = TestSocket(makeDescriptor(SOCK_DGRAM))
        return withExtendedLifetime(socket) { bindLoopback(socket.descriptor, port) }
    }

    /// Accepts the next connection.
    public func accept() throws -> TestSocket {
        let accepted = uninterrupted { systemAccept(descriptor, nil, nil) }
        guard accepted >= 0 else { throw Failure(call: "accept", code: errno) }
        return TestSocket(accepted)
    }

    /// Sends all of `bytes`.
    public func send(_ bytes: some Collection<UInt8>) throws {
        var left = ArraySlice(Array(bytes))
        while !left.isEmpty {
            let count = left.withUnsafeBytes { bytes in
                uninterrupted { systemSend(descriptor, bytes.baseAddress, bytes.count) }
            }
            guard count > 0 else { throw Failure(call: "send", code: errno) }
            left = left.dropFirst(count)
        }
    }

    /// Sends as many of `bytes` as fit into the send buffer.
    public func sendNonblocking(_ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { systemSend(descriptor, $0.baseAddress, $0.count, CInt(MSG_DONTWAIT)) }
    }

    /// Receives available bytes; returns an empty array at the end of the stream.
    public func receive(atMost size: Int = 65536) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: size)
        let count = uninterrupted { recv(descriptor, &buffer, size, 0) }
        guard count >= 0 else { throw Failure(call: "recv", code: errno) }
        return Array(buffer.prefix(count))
    }

    /// Receives exactly `size` bytes, or fewer if the stream ends.
    public func receive(exactly size: Int) throws -> [UInt8] {
        var received: [UInt8] = []
        while received.count < size {
            let piece = try receive(atMost: size - received.count)
            if piece.isEmpty { break }
            received += piece
        }
        return received
    }

    /// Receives until the socket fails; returns the number of bytes before that and the errno, 0 for a FIN.
    public func receiveToFailure() -> (bytes: Int, code: CInt) {
        var bytes = 0
        while true {
            do {
                let piece = try receive()
                if piece.isEmpty { return (bytes, 0) }
                bytes += piece.count
            } catch let failure as Failure {
                return (bytes, failure.code)
            } catch {
                return (bytes, -1)
            }
        }
    }

    /// Receives all bytes until the end of the stream.
    public func receiveToEnd() throws -> [UInt8] {
        var received: [UInt8] = []
        while true {
            let piece = try receive()
            if piece.isEmpty { return received }
            received += piece
        }
    }

    /// Returns whether the socket becomes readable within `milliseconds`.
    public func isReadable(within milliseconds: Int) -> Bool { isReady(for: POLLIN, within: milliseconds) }

    private func isReady(for events: some BinaryInteger, within milliseconds: Int) -> Bool {
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        var rest = milliseconds
        while true {
            let count = poll(&entry, 1, CInt(rest))
            guard count < 0, errno == EINTR else { return count > 0 }
            rest = max(0, Int((deadline - ContinuousClock.now) / .milliseconds(1)))
        }
    }

    /// Sends a byte as urgent data.
    public func sendUrgent(_ byte: UInt8) {
        var byte = byte
        _ = systemSend(descriptor, &byte, 1, CInt(MSG_OOB))
    }

    /// Sends a FIN; receiving stays possible.
    public func finish() { shutdown(descriptor, CInt(SHUT_WR)) }

    /// Makes the close send a RST, when the last reference is released.
    public func resetOnClose() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Sends a RST now by dissolving the association (connect to AF_UNSPEC). The socket cannot be used afterwards.
    public func reset() {
        resetOnClose()
        var unspecified = sockaddr()
        unspecified.sa_family = sa_family_t(AF_UNSPEC)
        _ = systemConnect(descriptor, &unspecified, socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// Makes the receive buffer small, so that back-pressure begins soon.
    public func shrinkReceiveBuffer() {
        var size: CInt = 4096
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
    }

    /// Undoes ``shrinkReceiveBuffer()``: the sender may send more than a segment per round trip again.
    public func growReceiveBuffer() {
        var size: CInt = 1 << 20
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
    }

    private static func loopback(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    #if canImport(Glibc)
    private static func makeDescriptor(_ type: __socket_type = SOCK_STREAM) -> CInt {
        socket(AF_INET, CInt(type.rawValue), 0)
    }
    #else
    private static func makeDescriptor(_ type: CInt = SOCK_STREAM) -> CInt { socket(AF_INET, type, 0) }
    #endif
}

// The system calls, under names that differ from the methods'.
private func systemClose(_ descriptor: CInt) -> CInt { close(descriptor) }
private func systemConnect(_ descriptor: CInt, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> CInt {
    connect(descriptor, address, size)
}
private func systemListen(_ descriptor: CInt, _ backlog: CInt) -> CInt { listen(descriptor, backlog) }
private func systemAccept(
    _ descriptor: CInt, _ address: UnsafeMutablePointer<sockaddr>?, _ size: UnsafeMutablePointer<socklen_t>?
) -> CInt { accept(descriptor, address, size) }
private func systemSend(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: CInt = 0) -> Int {
    #if canImport(Darwin)
    send(descriptor, bytes, count, flags)
    #else
    send(descriptor, bytes, count, CInt(MSG_NOSIGNAL) | flags)
    #endif
}

/// Repeats a system call that a signal has interrupted: a socket with a time limit is not restarted by the kernel after SIGCONT
/// (signal(7)).
func uninterrupted<Count: SignedInteger>(_ call: () -> Count) -> Count {
    while true {
        let count = call()
        if count >= 0 || errno != EINTR { return count }
    }
}

/// Runs a blocking closure on a thread of its own.
public func blocking<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}
