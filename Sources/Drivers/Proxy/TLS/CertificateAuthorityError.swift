/// The reason why an authority cannot be made, or cannot certify a host.
public struct CertificateAuthorityError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
