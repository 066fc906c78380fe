#if TLS
internal import Crypto
internal import DequeModule
public import ForwardProxy
internal import Foundation
internal import NIOConcurrencyHelpers
internal import NIOSSL
internal import SwiftASN1
internal import X509

/// A certificate authority for intercepted TLS connections.
///
/// Clients trust the root, whose key has been discarded. It has signed one intermediate authority, the issuer, whose
/// critical name constraints allow only the intercepted hosts. So nobody, not even the owner of the issuer's key, can
/// make a certificate of another host that these clients accept.
public final class CertificateAuthority: Sendable {
    /// The hosts that the name constraints allow; ``ForwardProxy/InterceptedHosts/all`` for none.
    public let hosts: InterceptedHosts
    let root: Certificate
    let issuer: Certificate
    private let issuerKey: P256.Signing.PrivateKey
    private let issuerBytes: [UInt8]
    private let identities = NIOLockedValueBox(Identities())

    /// The longest validity of an authority, in days.
    public static let daysMax = 90
    /// The validity of the certificate of a host, which ends with that of the issuer at the latest.
    static let leafDays = 7
    /// The time by which validities begin early, for clients whose clocks are slow, in seconds.
    private static let backdating: Int64 = 3600
    /// The remaining validity below which an identity is made anew, in seconds.
    private static let renewalTime: Int64 = 86400
    /// The maximum number of identities that are kept.
    static let identitiesMax = 1024
    /// The maximum number of names that are copied from the certificate of an upstream.
    static let namesMax = 100
    /// The most bytes by which a certificate is enlarged.
    static let paddingBytesMax = 16 << 10

    /// Creates an authority in memory.
    ///
    /// - Parameters:
    ///   - now: The time, in seconds since 1970.
    ///   - days: The validity, 1 to ``daysMax``.
    public init(for hosts: InterceptedHosts, now: Int64, days: Int = 7) throws(CertificateAuthorityError) {
        self.hosts = hosts
        let (rootKey, issuerKey) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
        let validity = Validity(start: now - Self.backdating, end: now + Int64(min(max(days, 1), Self.daysMax)) * 86400)
        do {
            // Distinct names, so that the authorities of several runs can be told apart in a store of certificates.
            let number = String(UInt32.random(in: .min ... .max), radix: 16)
            let rootName = try DistinguishedName { CommonName("Slowlane CA \(number)") }
            root = try Self.certificate(
                of: rootKey.publicKey, named: rootName, by: rootName, rootKey, validity,
                try Self.authorityExtensions(rootKey.publicKey, pathLength: 1))
            var extensions = try Self.authorityExtensions(issuerKey.publicKey, pathLength: 0)
            try extensions.append(.init(Self.keyIdentifier(ofIssuer: rootKey.publicKey), critical: false))
            if let constraints = hosts.constraints {
                try extensions.append(.init(Self.nameConstraints(constraints), critical: true))
            }
            issuer = try Self.certificate(
                of: issuerKey.publicKey, named: try DistinguishedName { CommonName("Slowlane issuer \(number)") },
                by: rootName, rootKey, validity, extensions)
            issuerBytes = try Self.bytes(issuer)
        } catch {
            throw CertificateAuthorityError("the certificates cannot be made: \(error)")
        }
        self.issuerKey = issuerKey
    }

    /// Reads an authority from files.
    ///
    /// - Parameters:
    ///   - certificate: The root in PEM form, followed by the issuer.
    ///   - key: The key of the issuer in PEM form.
    public init(certificates: String, key: String) throws(CertificateAuthorityError) {
        let documents: [PEMDocument]
        do {
            documents = try PEMDocument.parseMultiple(pemString: certificates)
            guard documents.count == 2 else { throw CertificateAuthorityError("there are not two certificates") }
            (root, issuer) = (try Certificate(pemDocument: documents[0]), try Certificate(pemDocument: documents[1]))
            issuerKey = try P256.Signing.PrivateKey(pemRepresentation: key)
        } catch let error as CertificateAuthorityError {
            throw error
        } catch {
            throw CertificateAuthorityError("the certificates or the key cannot be read: \(error)")
        }
        guard issuer.publicKey == Certificate.PublicKey(issuerKey.publicKey),
            root.publicKey.isValidSignature(issuer.signature, for: issuer)
        else { throw CertificateAuthorityError("the certificates and the key do not belong together") }
        let constraints = try? issuer.extensions.nameConstraints
        hosts = InterceptedHosts(
            constraints.map {
                .init(
                    names: Array($0.permittedDNSDomains), networks: $0.permittedIPRanges.map { Array($0.bytes) })
            })
        issuerBytes = documents[1].derBytes
    }
}

// MARK: What clients and users see

extension CertificateAuthority {
    /// The certificate that clients must trust, in PEM form.
    public var certificatePEM: String { (try? root.serializeAsPEM().pemString + "\n") ?? "" }

    /// The certificate that clients must trust, in DER form.
    public var certificateBytes: [UInt8] { (try? Self.bytes(root)) ?? [] }

    /// The certificate of the issuer in PEM form.
    public var issuerPEM: String { (try? issuer.serializeAsPEM().pemString + "\n") ?? "" }

    /// The issuer's key in PEM form: a secret.
    public var keyPEM: String { issuerKey.pemRepresentation + "\n" }

    /// The name of the root.
    public var name: String { root.subject.first?.first?.value.description ?? "" }

    /// The SHA-256 digest of the root.
    public var fingerprint: String {
        SHA256.hash(data: certificateBytes).map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined(separator: ":")
    }

    /// The SHA-256 digest of the issuer's public key in base 64, which every chain has: an exception of Chromium
    /// (`--ignore-certificate-errors-spki-list`).
    public var keyDigest: String {
        Data(SHA256.hash(data: issuerKey.publicKey.derRepresentation)).base64EncodedString()
    }

    /// The validity, in seconds since 1970.
    public var validity: ClosedRange<Int64> {
        let start = Int64(issuer.notValidBefore.timeIntervalSince1970)
        return start...max(start, Int64(issuer.notValidAfter.timeIntervalSince1970))
    }
}

// MARK: Use

extension CertificateAuthority {
    /// Throws if the authority has expired, or may not certify all hosts.
    public func check(_ hosts: InterceptedHosts, now: Int64) throws(CertificateAuthorityError) {
        guard now < validity.upperBound else {
            throw CertificateAuthorityError(
                "the authority has expired; run 'slowlane ca delete' and 'slowlane ca create', and trust the new one")
        }
        guard hosts.isSubset(of: self.hosts) else {
            throw CertificateAuthorityError(
                "the authority may certify only \(self.hosts), not all of: \(hosts); run 'slowlane ca delete' and "
                    + "'slowlane ca create --for HOST', and trust the new one")
        }
    }
}

// MARK: Certificates of hosts

/// A chain of certificates and the key with which the proxy ends a client's TLS.
struct InterceptionIdentity: Hashable, Sendable {
    /// The certificate of the host and that of the issuer.
    let chain: [NIOSSLCertificateSource]
    let key: NIOSSLPrivateKey
    /// The size of the certificates in bytes.
    let chainBytes: Int
    /// The end of the validity, in seconds since 1970.
    let end: Int64

    private var number: ObjectIdentifier { ObjectIdentifier(key) }

    static func == (left: Self, right: Self) -> Bool { left.number == right.number }
    func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

extension CertificateAuthority {
    private struct Identities {
        var byRequest: [Request: InterceptionIdentity] = [:]
        /// The requests in the order of their first use.
        var order: Deque<Request> = []
    }

    private struct Request: Hashable {
        var host: String?
        /// The digest of the upstream's certificates, which may be large.
        var upstream: SHA256Digest
    }

    /// Returns the chain and the key for a host. The size of the chain is that of the upstream's, so that the handshake has
    /// as many bytes, unless the upstream's is smaller than any of this authority.
    ///
    /// - Parameters:
    ///   - serverName: The name that the client has sent, or its destination; `nil` for the first name of the upstream.
    ///   - upstream: The certificates of the upstream, its own first.
    func identity(
        for serverName: String?, upstream: [NIOSSLCertificate], now: Int64 = Int64(Date().timeIntervalSince1970)
    ) throws(CertificateAuthorityError) -> InterceptionIdentity {
        var host: String?
        if let serverName {
            host = hosts.normalized(serverName)
            if host == nil { throw CertificateAuthorityError("the authority may not certify this host") }
        }
        guard now < validity.upperBound else { throw CertificateAuthorityError("the authority has expired") }
        let certificates = upstream.compactMap { try? $0.toDERBytes() }
        let request = Request(host: host, upstream: Self.digest(of: certificates))
        if let known = identities.withLockedValue({ $0.byRequest[request] }), isUsable(known, now: now) { return known }
        let identity: InterceptionIdentity
        do {
            identity = try make(for: host, like: certificates, now: now)
        } catch let error as CertificateAuthorityError {
            throw error
        } catch {
            throw CertificateAuthorityError("the certificate cannot be made: \(error)")
        }
        identities.withLockedValue { identities in
            if identities.byRequest.updateValue(identity, forKey: request) != nil { return }
            identities.order.append(request)
            if identities.order.count > Self.identitiesMax, let oldest = identities.order.popFirst() {
                identities.byRequest[oldest] = nil
            }
        }
        return identity
    }

    /// Returns whether the validity of an identity is long enough, or as long as that of a new one.
    private func isUsable(_ identity: InterceptionIdentity, now: Int64) -> Bool {
        identity.end - now >= Self.renewalTime || identity.end == validity.upperBound
    }

    private static func digest(of certificates: [[UInt8]]) -> SHA256Digest {
        var hash = SHA256()
        for certificate in certificates { hash.update(data: certificate) }
        return hash.finalize()
    }

    private func make(for host: String?, like upstream: [[UInt8]], now: Int64) throws -> InterceptionIdentity {
        let names = names(for: host, like: upstream.first)
        if names.isEmpty { throw CertificateAuthorityError("there is no name to certify") }
        let key = P256.Signing.PrivateKey()
        let validity = Validity(
            start: now - Self.backdating, end: min(now + Int64(Self.leafDays) * 86400, validity.upperBound))
        // The size of the chain. Some clients have a limit, and an upstream may be hostile.
        let size = upstream.reduce(0) { min($0 + $1.count, 1 << 20) }
        var padding = 0
        var leaf = try self.leaf(key.publicKey, names, validity, padding: 0)
        // A larger extension may also have larger lengths, and signatures differ by a few bytes.
        for _ in 0..<Self.paddingRoundsMax {
            let missing = size - issuerBytes.count - leaf.count
            if padding == 0 && missing <= Self.paddingOverhead { break }
            if abs(missing) <= Self.signatureDeviation { break }
            padding += missing - (padding == 0 ? Self.paddingOverhead : 0)
            padding = min(max(padding, 0), Self.paddingBytesMax)
            leaf = try self.leaf(key.publicKey, names, validity, padding: padding)
        }
        return InterceptionIdentity(
            chain: try [leaf, issuerBytes].map { .certificate(try NIOSSLCertificate(bytes: $0, format: .der)) },
            key: try NIOSSLPrivateKey(bytes: Array(key.derRepresentation), format: .der),
            chainBytes: leaf.count + issuerBytes.count, end: validity.end)
    }

    private static let paddingRoundsMax = 3
    /// The bytes of an empty extension.
    private static let paddingOverhead = 14
    private static let signatureDeviation = 3

    /// The identifier of the extension whose bytes mean nothing. Its last part is a random number of 31 bits, not the
    /// whole identifier of 128 bits that belongs there, because Go refuses larger parts.
    private static let paddingIdentifier: ASN1ObjectIdentifier = [2, 25, 1_864_937_253]

    /// Returns the names of a certificate: those of the upstream that may be certified, if one of them is that of the
    /// host; the host alone otherwise.
    private func names(for host: String?, like upstream: [UInt8]?) -> [GeneralName] {
        let address = host.flatMap { IPAddress($0) }
        let own = address.map { GeneralName.ipAddress(ASN1OctetString(contentBytes: $0.bytes[...])) }
        let wanted = own ?? host.map { .dnsName($0) }
        var names: [GeneralName] = []
        var isCovered = host == nil
        for name in upstream.flatMap(Self.alternativeNames) ?? [] where names.count < Self.namesMax {
            switch name {
            case .dnsName(let text):
                guard let text = hosts.normalized(certificateName: text) else { continue }
                names.append(.dnsName(text))
                if let host, address == nil, InterceptedHosts.covers(text, host) { isCovered = true }
            case .ipAddress(let bytes):
                guard let address = IPAddress(bytes: Array(bytes.bytes)), hosts.includes("\(address)") else { continue }
                names.append(name)
                if name == own { isCovered = true }
            default: break
            }
        }
        return isCovered ? names : [wanted].compactMap { $0 }
    }

    private static func alternativeNames(of certificate: [UInt8]) -> [GeneralName]? {
        let certificate = try? Certificate(derEncoded: certificate)
        return try? certificate?.extensions.subjectAlternativeNames.map { Array($0) }
    }

    private func leaf(
        _ key: P256.Signing.PublicKey, _ names: [GeneralName], _ validity: Validity, padding: Int
    ) throws -> [UInt8] {
        var extensions = try Certificate.Extensions {
            Critical(BasicConstraints.notCertificateAuthority)
            Critical(KeyUsage(digitalSignature: true))
            try ExtendedKeyUsage([.serverAuth])
            SubjectKeyIdentifier(hash: Certificate.PublicKey(key))
            Self.keyIdentifier(ofIssuer: issuerKey.publicKey)
            SubjectAlternativeNames(names)
        }
        if padding > 0 {
            let zeros = [UInt8](repeating: 0, count: padding)
            try extensions.append(.init(oid: Self.paddingIdentifier, critical: false, value: zeros[...]))
        }
        let name = try DistinguishedName { CommonName(Self.commonName(of: names)) }
        return try Self.bytes(
            Self.certificate(of: key, named: name, by: issuer.subject, issuerKey, validity, extensions))
    }

    /// The maximum length of a Common Name (RFC 5280, A.1).
    private static let commonNameLengthMax = 64

    /// Returns the Common Name, which iOS demands. Without a DNS name beside it, OpenSSL compares what looks like one, such
    /// as an IPv4 address, with the constraints.
    private static func commonName(of names: [GeneralName]) -> String {
        switch names.first {
        case .dnsName(let name) where name.utf8.count <= commonNameLengthMax: name
        default: "host"
        }
    }
}

// MARK: Certificates

extension CertificateAuthority {
    /// A validity, in seconds since 1970.
    private struct Validity {
        var start: Int64
        var end: Int64
    }

    private static func certificate(
        of key: P256.Signing.PublicKey, named subject: DistinguishedName, by issuer: DistinguishedName,
        _ issuerKey: P256.Signing.PrivateKey, _ validity: Validity, _ extensions: Certificate.Extensions
    ) throws -> Certificate {
        var random = SystemRandomNumberGenerator()
        let serial = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        return try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(bytes: serial),
            publicKey: Certificate.PublicKey(key),
            notValidBefore: Date(timeIntervalSince1970: Double(validity.start)),
            notValidAfter: Date(timeIntervalSince1970: Double(validity.end)), issuer: issuer, subject: subject,
            signatureAlgorithm: .ecdsaWithSHA256, extensions: extensions,
            issuerPrivateKey: Certificate.PrivateKey(issuerKey))
    }

    private static func authorityExtensions(
        _ key: P256.Signing.PublicKey, pathLength: Int
    ) throws -> Certificate.Extensions {
        try Certificate.Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: pathLength))
            Critical(KeyUsage(keyCertSign: true, cRLSign: true))
            SubjectKeyIdentifier(hash: Certificate.PublicKey(key))
        }
    }

    private static func keyIdentifier(ofIssuer key: P256.Signing.PublicKey) -> AuthorityKeyIdentifier {
        AuthorityKeyIdentifier(
            keyIdentifier: SubjectKeyIdentifier(hash: Certificate.PublicKey(key)).keyIdentifier)
    }

    private static func nameConstraints(_ constraints: InterceptedHosts.Constraints) -> NameConstraints {
        func octets(_ networks: [[UInt8]]) -> NameConstraints.IPRanges {
            NameConstraints.IPRanges(networks.map { ASN1OctetString(contentBytes: $0[...]) })
        }
        return NameConstraints(
            permittedDNSDomains: constraints.names, permittedIPRanges: octets(constraints.networks),
            excludedIPRanges: octets(constraints.networksExcluded))
    }

    private static func bytes(_ certificate: Certificate) throws -> [UInt8] {
        var serializer = DER.Serializer()
        try certificate.serialize(into: &serializer)
        return serializer.serializedBytes
    }
}
#endif
