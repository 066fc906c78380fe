internal import NIOCore

/// Why a proxy cannot start: what, where, what to do.
public struct ProxyError: Error, CustomStringConvertible {
    /// The kind of failure.
    public let code: Code
    /// The address that could not be had.
    public let endpoint: Endpoint
    /// What the system said.
    public let reason: String

    /// The kinds of failure.
    public enum Code: Hashable, Sendable {
        /// The listening port is taken, not allowed, or not on this machine.
        case cannotListen
        /// The upstream's name has no address.
        case cannotResolve
        /// The upstream is the proxy itself.
        case callsItself
    }

    public var description: String {
        switch code {
        case .cannotListen:
            "cannot listen on \(endpoint): \(reason); choose another --listen (port 0 takes a free one)"
        case .cannotResolve:
            "cannot resolve the upstream '\(endpoint.host)': \(reason); check --upstream HOST:PORT"
        case .callsItself:
            "the upstream \(endpoint) is this proxy itself: it would call itself for ever; change --listen or --upstream"
        }
    }

    static func cannotListen(_ endpoint: Endpoint, _ error: any Error) -> ProxyError {
        ProxyError(code: .cannotListen, endpoint: endpoint, reason: SystemReason.of(error))
    }
}

/// What the system said, in a few words.
public enum SystemReason {
    /// The words of an error.
    public static func of(_ error: any Error) -> String {
        switch error {
        case let error as IOError: return words(error.errnoCode)
        case ChannelError.connectTimeout(let after): return "no answer within \(after.nanoseconds / 1_000_000) ms"
        default: return "\(error)"
        }
    }
}
