internal import HTTPSockets
internal import NIOCore

/// An error that prevents a proxy from starting.
public struct ProxyError: Error, CustomStringConvertible {
    /// The kind of error.
    public let code: Code
    /// The address that cannot be bound or reached.
    public let endpoint: Endpoint
    /// The cause in words: "address already in use".
    public let reason: String
    /// The name of the system's error, such as EADDRINUSE; `nil` if the cause is another.
    public let errnoName: String?
    /// The cause of ``Code/cannotResolve``.
    let lookupFailure: LookupFailure?

    /// The causes that the system's resolver tells apart.
    enum LookupFailure {
        /// The name has no address, or does not exist.
        case noAddress
        /// No name server responds.
        case timeout
        /// A name server failed, or too many lookups are under way.
        case other
    }

    /// The kinds of errors.
    public enum Code: Hashable, Sendable {
        /// The listening port is in use, not permitted, or not an address of this machine.
        case cannotBind
        /// The upstream's name has no address.
        case cannotResolve
        /// The upstream is the proxy's own listening address.
        case upstreamIsProxy
    }

    init(
        code: Code, endpoint: Endpoint, reason: String, errnoName: String? = nil, lookupFailure: LookupFailure? = nil
    ) {
        self.lookupFailure = lookupFailure
        self.code = code
        self.endpoint = endpoint
        self.reason = reason
        self.errnoName = errnoName
    }

    public var description: String {
        let cause = errnoName.map { "\(reason) (\($0))" } ?? reason
        return switch code {
        case .cannotBind:
            "cannot bind \(endpoint): \(cause); \(bindRemedy)"
        case .cannotResolve:
            "cannot resolve the upstream '\(endpoint.host)': \(cause); check --upstream HOST:PORT"
        case .upstreamIsProxy:
            "the upstream \(endpoint) is the proxy's own address (a loop); change --listen or --upstream"
        }
    }

    /// The remedy for an address that cannot be bound.
    private var bindRemedy: String {
        switch errnoName {
        case "EADDRINUSE": "choose another port with --listen (port 0 selects a free one)"
        case "EACCES", "EPERM": "choose a port from 1024 with --listen (port 0 selects a free one)"
        case "EMFILE", "ENFILE": "raise the limit on open files (ulimit -n)"
        default: "choose an address of this machine with --listen"
        }
    }

    static func cannotBind(_ endpoint: Endpoint, _ error: any Error) -> ProxyError {
        let cause = SystemErrorDescription(error)
        return ProxyError(code: .cannotBind, endpoint: endpoint, reason: cause.text, errnoName: cause.errnoName)
    }
}
