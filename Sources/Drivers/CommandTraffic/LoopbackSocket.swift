#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Sockets of this process.
enum LoopbackSocket {
    /// Returns a socket on a free port of 127.0.0.1, for connections or for datagrams; `nil` on failure.
    static func open(isStream: Bool) -> (socket: CInt, port: Int)? {
        guard let file = create(AF_INET, isStream: isStream) else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(file, $0, length) == 0 && (!isStream || listen(file, 1) == 0)
                    && getsockname(file, $0, &length) == 0
            }
        }
        guard isBound else {
            close(file)
            return nil
        }
        return (file, Int(UInt16(bigEndian: address.sin_port)))
    }

    /// Returns a socket that exchanges datagrams with an address; `nil` on failure.
    static func connectDatagrams(to address: ConnectAddress) -> CInt? {
        guard let file = create(address.bytes.count == 4 ? AF_INET : AF_INET6, isStream: false) else { return nil }
        var storage = sockaddr_storage()
        let isConnected = withUnsafeMutableBytes(of: &storage) { storage in
            let isIPv4 = address.bytes.count == 4
            let family = sa_family_t(isIPv4 ? AF_INET : AF_INET6)
            let length = isIPv4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
            storage.storeBytes(of: sockaddr(sa_family: family, sa_data: sockaddr().sa_data), as: sockaddr.self)
            storage[2] = UInt8(address.port >> 8)
            storage[3] = UInt8(address.port & 0xFF)
            storage[(isIPv4 ? 4 : 8)...].copyBytes(from: address.bytes)
            return storage.withMemoryRebound(to: sockaddr.self) {
                connect(file, $0.baseAddress, socklen_t(length)) == 0
            }
        }
        guard isConnected else {
            close(file)
            return nil
        }
        return file
    }

    private static func create(_ family: CInt, isStream: Bool) -> CInt? {
        #if canImport(Glibc)
        let file = socket(family, CInt((isStream ? SOCK_STREAM : SOCK_DGRAM).rawValue), 0)
        #else
        let file = socket(family, isStream ? SOCK_STREAM : SOCK_DGRAM, 0)
        #endif
        guard file >= 0 else { return nil }
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        return file
    }
}
