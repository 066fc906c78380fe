internal import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Lookups with the system's resolver (`getaddrinfo`). Blocking; call off the event loop.
enum NameLookup {
    /// Returns all addresses of a host, in the system's order; for a numeric host that address.
    static func addresses(of endpoint: Endpoint) throws -> [SocketAddress] {
        if let address = try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port) { return [address] }
        var hints = streamHints
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(endpoint.host, "\(endpoint.port)", &hints, &list)
        defer { if let list { freeaddrinfo(list) } }
        guard code == 0 else {
            throw ProxyError(
                code: .cannotResolve, endpoint: endpoint,
                reason: code == EAI_NONAME ? "its name has no address" : String(cString: gai_strerror(code)),
                lookupFailure: code == EAI_NONAME ? .noAddress : .other)
        }
        var addresses: [SocketAddress] = []
        var entry = list
        while let info = entry?.pointee {
            entry = info.ai_next
            guard let pointer = info.ai_addr else { continue }
            switch info.ai_family {
            case AF_INET:
                let address = pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee }
                addresses.append(SocketAddress(address, host: endpoint.host))
            case AF_INET6:
                let address = pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { $0.pointee }
                addresses.append(SocketAddress(address, host: endpoint.host))
            default: break
            }
        }
        guard !addresses.isEmpty else {
            throw ProxyError(
                code: .cannotResolve, endpoint: endpoint, reason: "its name has no address", lookupFailure: .noAddress)
        }
        return addresses
    }

    /// Returns the port of a service name; `nil` if it is unknown.
    static func port(ofService name: String) -> Int? {
        var hints = streamHints
        hints.ai_family = AF_INET
        var list: UnsafeMutablePointer<addrinfo>?
        guard !name.contains("\0"), getaddrinfo(nil, name, &hints, &list) == 0, let list else { return nil }
        defer { freeaddrinfo(list) }
        return list.pointee.ai_addr.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
            SocketAddress($0.pointee, host: "").port
        }
    }

    private static var streamHints: addrinfo {
        var hints = addrinfo()
        #if canImport(Glibc)
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        #else
        hints.ai_socktype = SOCK_STREAM
        #endif
        return hints
    }
}
