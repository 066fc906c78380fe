internal import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The method of dropping SYNs of new connections during an outage.
public enum SYNDropMethod: String, Hashable, Sendable, CaseIterable {
    /// A socket filter on the listening socket drops all packets (Linux; some kernels require CAP_NET_ADMIN).
    case socketFilter = "socket filter"
    /// The accept queue is kept full, so that the kernel drops SYNs (Linux).
    case acceptQueue = "accept queue"
    /// SYNs are not dropped: connections open, and then stall.
    case none = "none"

    /// The best method that this machine supports.
    public static let best: SYNDropMethod = {
        #if os(Linux)
        guard let probe = try? PortHold(SocketAddress(ipAddress: "127.0.0.1", port: 0)) else { return .none }
        return ListeningSocket.dropEverything(probe.descriptor) ? .socketFilter : .acceptQueue
        #else
        return .none
        #endif
    }()
}

/// System calls on a listening socket for which NIO has no API.
enum ListeningSocket {
    /// Attaches a socket filter that drops all packets. Returns `false` if that is not permitted.
    static func dropEverything(_ descriptor: CInt) -> Bool {
        #if os(Linux)
        // struct sock_fprog { unsigned short len; struct sock_filter { u16 code; u8 jt, jf; u32 k; } *filter; },
        // with the single instruction BPF_RET | BPF_K 0: truncate the packet to 0 bytes (linux/filter.h).
        var instruction: UInt64 = UInt64(0x06).littleEndian
        return withUnsafeMutableBytes(of: &instruction) { filter in
            let stride = MemoryLayout<UnsafeMutableRawPointer>.stride
            var program = [UInt8](repeating: 0, count: 2 * stride)
            return program.withUnsafeMutableBytes { bytes in
                bytes.storeBytes(of: UInt16(1), as: UInt16.self)
                bytes.storeBytes(
                    of: UInt(bitPattern: filter.baseAddress), toByteOffset: stride, as: UInt.self)
                return setsockopt(
                    descriptor, SOL_SOCKET, SO_ATTACH_FILTER, bytes.baseAddress, socklen_t(bytes.count)) == 0
            }
        }
        #else
        return false
        #endif
    }

    /// Detaches the socket filter.
    static func dropNothing(_ descriptor: CInt) {
        #if os(Linux)
        var nothing: CInt = 0
        setsockopt(descriptor, SOL_SOCKET, SO_DETACH_FILTER, &nothing, socklen_t(MemoryLayout<CInt>.size))
        #endif
    }

    /// Sets the limit of the accept queue; with 0 the queue holds one connection.
    static func setBacklog(_ descriptor: CInt, _ count: CInt) { _ = listen(descriptor, count) }
}

/// A bound socket that never listens and reserves the port while connections are refused.
///
/// On Linux several sockets with `SO_REUSEADDR` may be bound to a port, as long as at most one of them listens.
final class PortHold {
    let descriptor: CInt
    /// The bound address, with the actual port if port 0 was requested.
    let address: SocketAddress

    init(_ address: SocketAddress) throws {
        let descriptor = socket(CInt(address.protocol.rawValue), Self.stream, 0)
        guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
        var yes: CInt = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<CInt>.size))
        let bound = address.withSockAddr { bind(descriptor, $0, socklen_t($1)) }
        guard bound == 0 else {
            let code = errno
            close(descriptor)
            throw IOError(errnoCode: code, reason: "bind")
        }
        do {
            self.address = try SystemSocket.localAddress(of: descriptor)
        } catch {
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Opens an idle connection to `listener`, with a non-blocking `connect()`.
    static func connection(to listener: SocketAddress) -> Filler? {
        let descriptor = socket(CInt(listener.protocol.rawValue), stream, 0)
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        let result = listener.withSockAddr { connect(descriptor, $0, socklen_t($1)) }
        guard result == 0 || errno == EINPROGRESS, let address = try? SystemSocket.localAddress(of: descriptor) else {
            close(descriptor)
            return nil
        }
        return Filler(descriptor: descriptor, address: address)
    }

    /// A connection of the proxy itself that fills the accept queue; recognised by its address.
    final class Filler {
        private let descriptor: CInt
        let address: SocketAddress

        init(descriptor: CInt, address: SocketAddress) {
            self.descriptor = descriptor
            self.address = address
        }

        deinit { close(descriptor) }
    }

    #if os(Linux)
    private static let stream = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
    #else
    private static let stream = SOCK_STREAM
    #endif
}
