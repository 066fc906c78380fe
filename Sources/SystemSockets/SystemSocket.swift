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

/// Calls on sockets that are not SwiftNIO's.
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

    /// Bytes that a socket's peer has not acknowledged; 0 where the system does not tell (macOS).
    package static func unacknowledgedBytes(of descriptor: CInt) -> Int {
        #if os(Linux)
            return Int(crelay_unacknowledged(descriptor))
        #else
            return 0
        #endif
    }

    /// Whether a socket is ready for what is asked, or has failed; never waits.
    static func isReady(_ request: inout pollfd) -> Bool { poll(&request, 1, 0) > 0 }

    #if os(Linux)
        /// What epoll would report of a socket now; nothing if there is none. Their bits are poll's.
        package static func events(of descriptor: CInt) -> UInt32 {
            var request = pollfd(
                fd: descriptor, events: Int16(truncatingIfNeeded: POLLIN | POLLPRI | POLLOUT | POLLRDHUP), revents: 0)
            return isReady(&request) ? UInt32(UInt16(bitPattern: request.revents)) : 0
        }

        private static let POLLRDHUP: CInt = 0x2000
    #endif

    /// Where a socket is.
    package static func localAddress(of descriptor: CInt) throws -> SocketAddress {
        try address { getsockname(descriptor, $0, $1) }
    }

    /// Where its peer is.
    package static func remoteAddress(of descriptor: CInt) throws -> SocketAddress {
        try address { getpeername(descriptor, $0, $1) }
    }

    private static func address(
        _ ask: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> CInt
    ) throws -> SocketAddress {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { ask($0, &length) }
        }
        guard code == 0 else { throw IOError(errnoCode: errno, reason: "the address of a socket") }
        let family = CInt(storage.ss_family)
        return try withUnsafePointer(to: &storage) { pointer in
            switch family {
            case AF_INET:
                pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { SocketAddress($0.pointee, host: "") }
            case AF_INET6:
                pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { SocketAddress($0.pointee, host: "") }
            default: throw IOError(errnoCode: EAFNOSUPPORT, reason: "the address of a socket")
            }
        }
    }
}

extension SocketAddress {
    /// Any address and any port of its family.
    package var wildcard: SocketAddress? {
        switch self {
        case .v4: try? SocketAddress(ipAddress: "0.0.0.0", port: 0)
        case .v6: try? SocketAddress(ipAddress: "::", port: 0)
        case .unixDomainSocket: nil
        }
    }
}
