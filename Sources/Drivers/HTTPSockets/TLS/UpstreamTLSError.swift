/// The reason why the TLS settings of an upstream cannot be used.
public struct UpstreamTLSError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The setting.
    public enum Part: Hashable, Sendable {
        /// The URL.
        case url
        /// The certificates of authorities.
        case authorities
        /// The certificate of the proxy.
        case certificate
        /// The private key of the proxy.
        case key
    }

    /// The setting that cannot be used.
    public let part: Part
    /// The reason.
    public let problem: String

    package init(part: Part, problem: String) {
        self.part = part
        self.problem = problem
    }

    public var description: String { problem }
}
