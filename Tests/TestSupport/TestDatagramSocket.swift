import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A blocking UDP socket on the loopback interface: the peer of a proxy under test, without SwiftNIO.
public final class TestDatagramSocket: Sendable {
    private let descriptor: CInt
    /// The local port.
    public let port: Int

    /// A datagram and the port of its sender.
    public struct Received: Sendable {
        public let bytes: [UInt8]
        public let port: Int
    }

    /// Binds a socket; 0 picks a free port.
    public init(port: Int = 0) throws {
        #if canImport(Darwin)
        let type = SOCK_DGRAM
        #else
        let type = CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        #endif
        descriptor = socket(AF_INET, type, 0)
        guard descriptor >= 0 else { throw TestSocket.Failure(call: "socket", code: errno) }
        var address = Self.address("127.0.0.1", port)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                bind(descriptor, name, size) == 0 && getsockname(descriptor, name, &size) == 0
            }
        }
        guard result else {
            let code = errno
            close(descriptor)
            throw TestSocket.Failure(call: "bind", code: code)
        }
        self.port = Int(UInt16(bigEndian: address.sin_port))
        var bytes: CInt = 1 << 20
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<CInt>.size))
    }

    /// Binds a socket that receives from one peer only, and its errors.
    public convenience init(connectedTo port: Int, host: String = "127.0.0.1") throws {
        try self.init()
        var address = Self.address(host, port)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw TestSocket.Failure(call: "connect", code: errno) }
    }

    deinit { close(descriptor) }

    private static func address(_ host: String, _ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = inet_addr(host)
        return address
    }

    /// Sends a datagram to the peer.
    public func send(_ bytes: [UInt8]) throws {
        let count = bytes.withUnsafeBytes { sendto(descriptor, $0.baseAddress, $0.count, 0, nil, 0) }
        guard count == bytes.count else { throw TestSocket.Failure(call: "send", code: errno) }
    }

    /// Sends a datagram to a port.
    public func send(_ bytes: [UInt8], to port: Int) throws {
        var address = Self.address("127.0.0.1", port)
        let count = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                bytes.withUnsafeBytes {
                    sendto(descriptor, $0.baseAddress, $0.count, 0, name, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        guard count == bytes.count else { throw TestSocket.Failure(call: "send", code: errno) }
    }

    /// Receives a datagram; returns `nil` if none arrives in time.
    public func receive(within milliseconds: Int = 10_000) throws -> Received? {
        var limit = timeval(tv_sec: milliseconds / 1000, tv_usec: .init(milliseconds % 1000 * 1000))
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = Self.address("127.0.0.1", 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                bytes.withUnsafeMutableBytes { bytes in
                    uninterrupted { recvfrom(descriptor, bytes.baseAddress, bytes.count, 0, name, &size) }
                }
            }
        }
        if count < 0 {
            if errno == EAGAIN || errno == EWOULDBLOCK { return nil }
            throw TestSocket.Failure(call: "recv", code: errno)
        }
        return Received(bytes: Array(bytes.prefix(count)), port: Int(UInt16(bigEndian: address.sin_port)))
    }
}
