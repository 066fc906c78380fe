internal import NIOCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension HTTPServer {
    /// The error of an address that cannot be bound.
    public struct BindError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The address as `HOST:PORT`, with brackets around an IPv6 address.
        public let address: String
        /// The cause in words; a system error ends with the name of its `errno`.
        public let cause: String
        /// The remedy for the user.
        public let remedy: String

        public var description: String { "cannot bind \(address): \(cause); \(remedy)" }

        init(_ error: any Error, host: String, port: Int, addressOption: String, portOption: String) {
            address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
            guard let code = (error as? IOError)?.errnoCode else {
                let isResolution = error is SocketAddressError || error is SocketAddressError.UnknownHost
                cause = isResolution ? "the host name cannot be resolved" : "\(error)"
                remedy = "choose another address with \(addressOption)"
                return
            }
            let text = String(cString: strerror(code))
            let name = Self.names[code] ?? "errno \(code)"
            cause = "\(text.prefix(1).lowercased())\(text.dropFirst()) (\(name))"
            switch code {
            case EADDRINUSE: remedy = "choose another port with \(portOption)"
            case EACCES, EPERM: remedy = "choose a port from 1024 with \(portOption)"
            case EADDRNOTAVAIL, EAFNOSUPPORT: remedy = "choose an address of this machine with \(addressOption)"
            case EMFILE, ENFILE: remedy = "raise the limit on open files (ulimit -n)"
            default: remedy = "choose another address with \(addressOption)"
            }
        }

        private static let names: [Int32: String] = [
            EACCES: "EACCES", EADDRINUSE: "EADDRINUSE", EADDRNOTAVAIL: "EADDRNOTAVAIL", EAFNOSUPPORT: "EAFNOSUPPORT",
            EINVAL: "EINVAL", EMFILE: "EMFILE", ENFILE: "ENFILE", ENOBUFS: "ENOBUFS", ENOMEM: "ENOMEM", EPERM: "EPERM",
        ]
    }
}
