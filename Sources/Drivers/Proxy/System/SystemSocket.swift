package import NIOCore

#if os(Linux)
internal import CRelay
#endif

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// System calls on socket descriptors.
package enum SystemSocket {
    /// Closes a descriptor.
    package static func close(_ descriptor: CInt) {
        #if canImport(Darwin)
        _ = Darwin.close(descriptor)
        #elseif canImport(Glibc)
        _ = Glibc.close(descriptor)
        #elseif canImport(Musl)
        _ = Musl.close(descriptor)
        #endif
    }

    /// Returns the bytes that a socket's peer has not acknowledged; 0 on systems that do not report it (macOS).
    package static func unacknowledgedBytes(of descriptor: CInt) -> Int {
        #if os(Linux)
        return Int(crelay_unacknowledged(descriptor))
        #else
        return 0
        #endif
    }

    /// Returns whether bytes of the peer have arrived that have not been read.
    package static func hasUnreadBytes(_ descriptor: CInt) -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT)) > 0
    }

    #if os(Linux)
    /// Returns the events pending on a socket, 0 for descriptor -1. The bits of poll(2) and epoll(7) are the same.
    package static func events(of descriptor: CInt) -> UInt32 {
        var request = pollfd(
            fd: descriptor, events: Int16(truncatingIfNeeded: POLLIN | POLLPRI | POLLOUT | POLLRDHUP), revents: 0)
        return poll(&request, 1, 0) > 0 ? UInt32(UInt16(bitPattern: request.revents)) : 0
    }

    private static let POLLRDHUP: CInt = 0x2000
    #endif

    /// Returns a socket's local address.
    package static func localAddress(of descriptor: CInt) throws -> SocketAddress {
        try address("getsockname") { getsockname(descriptor, $0, $1) }
    }

    /// Returns a socket's remote address.
    package static func remoteAddress(of descriptor: CInt) throws -> SocketAddress {
        try address("getpeername") { getpeername(descriptor, $0, $1) }
    }

    /// Returns the address that a system call stores.
    static func address(
        _ name: String, _ call: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> CInt
    ) throws -> SocketAddress {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, &length) }
        }
        guard code == 0 else { throw IOError(errnoCode: errno, reason: name) }
        let family = CInt(storage.ss_family)
        return try withUnsafePointer(to: &storage) { pointer in
            switch family {
            case AF_INET:
                pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { SocketAddress($0.pointee, host: "") }
            case AF_INET6:
                pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { SocketAddress($0.pointee, host: "") }
            default: throw IOError(errnoCode: EAFNOSUPPORT, reason: name)
            }
        }
    }
}

extension SocketAddress {
    /// The wildcard address and port of the same family; `nil` for a Unix domain socket.
    package var wildcard: SocketAddress? {
        switch self {
        case .v4: try? SocketAddress(ipAddress: "0.0.0.0", port: 0)
        case .v6: try? SocketAddress(ipAddress: "::", port: 0)
        case .unixDomainSocket: nil
        }
    }
}
