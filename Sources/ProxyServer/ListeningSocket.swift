internal import NIOCore
internal import SystemSockets

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// How new connections are kept from being answered while nothing gets through.
public enum SilenceMethod: String, Hashable, Sendable, CaseIterable {
    /// A filter on the listening socket drops every packet (Linux; some kernels want CAP_NET_ADMIN for it).
    case socketFilter = "socket filter"
    /// The queue of connections that wait to be accepted is kept full, so that the kernel drops SYNs (Linux).
    case acceptQueue = "accept queue"
    /// Not at all: they are answered, and then stall.
    case none = "none"

    /// The best that works on this machine.
    public static let best: SilenceMethod = {
        #if os(Linux)
            guard let probe = try? PortHold(SocketAddress(ipAddress: "127.0.0.1", port: 0)) else { return .none }
            return ListeningSocket.dropEverything(probe.descriptor) ? .socketFilter : .acceptQueue
        #else
            return .none
        #endif
    }()
}

/// What the system's own calls do to a listening socket; NIO has no names for them.
enum ListeningSocket {
    /// Attaches a filter that lets no packet through; `false` if that is not allowed.
    static func dropEverything(_ descriptor: CInt) -> Bool {
        #if os(Linux)
            // struct sock_fprog { unsigned short len; struct sock_filter { u16 code; u8 jt, jf; u32 k; } *filter; },
            // with the one instruction BPF_RET | BPF_K 0: keep no byte of the packet (linux/filter.h).
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

    /// Takes the filter away.
    static func dropNothing(_ descriptor: CInt) {
        #if os(Linux)
            var nothing: CInt = 0
            setsockopt(descriptor, SOL_SOCKET, SO_DETACH_FILTER, &nothing, socklen_t(MemoryLayout<CInt>.size))
        #endif
    }

    /// Sets how many connections may wait to be accepted; with 0 there is room for one.
    static func setBacklog(_ descriptor: CInt, _ count: CInt) { _ = listen(descriptor, count) }
}

/// A socket bound to an address and never listening: the port stays ours while no socket listens on it.
///
/// On Linux several sockets may be bound to a port with `SO_REUSEADDR` as long as one of them at most listens.
final class PortHold {
    let descriptor: CInt
    /// The address, with the real port if 0 was asked for.
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

    /// A connection to `listener` that says nothing: non-blocking, so that it never waits.
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

    /// A connection of our own that takes the last place in an accept queue; known by its address.
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
