internal import ForwardProxy
internal import Foundation
internal import HTTPSockets
internal import HTTPTypes
internal import Proxy
internal import Wire

/// The interception of TLS in a request: the fields `intercept`, `intercept_all` and, for the certificates of upstreams,
/// `upstream_tls`.
struct InterceptionRequest: Hashable, Sendable {
    /// The fields of the hosts.
    static let fieldNames = ["intercept", "intercept_all"]

    /// The hosts; without patterns for none.
    let hosts: InterceptedHosts
    /// The certificates for the upstreams.
    let upstream: UpstreamCertificates

    /// Creates the request that has the settings of a running proxy.
    init(_ interception: Interception) {
        hosts = interception.hosts
        upstream = interception.upstream
    }

    /// Reads the fields; `nil` if the hosts are not given. Reads the system's certificates of authorities.
    init?(_ fields: JSONFields) throws(APIError) {
        let names = try fields.array("intercept")
        let isAll = try fields.bool("intercept_all")
        if names == nil && isAll == nil { return nil }
        var texts: [String] = []
        for value in names ?? [] {
            guard let text = value.text else { throw .badBody("intercept has an entry that is not a string") }
            texts.append(text)
        }
        if isAll == true {
            guard texts.isEmpty else { throw .badBody("intercept_all includes every host; leave intercept out") }
            hosts = .all
        } else {
            do throws(HostRuleError) {
                hosts = try InterceptedHosts(parsing: texts)
            } catch {
                throw .badBody(RequestWarnings.printable("intercept: \(error)", bytesMax: 400))
            }
        }
        upstream = try UpstreamText.certificates(try fields.object("upstream_tls"))
        if hosts.patterns.isEmpty { return }
        do throws(UpstreamTLSError) {
            try upstream.check()
        } catch {
            throw UpstreamText.error(error)
        }
    }
}

/// The interception of a proxy.
extension ManagedProxy {
    /// Changes the interception. The authority in memory remains if it may certify the hosts.
    mutating func setInterception(_ request: InterceptionRequest?) {
        interception = request.flatMap { $0.hosts.patterns.isEmpty ? nil : $0 }
        if let hosts = interception?.hosts, authority.map({ hosts.isSubset(of: $0.hosts) }) == true { return }
        authority = nil
    }

    /// Returns whether a request has the same settings of TLS.
    func hasSameTransport(as request: ProxyRequest) -> Bool {
        protocols == request.protocols && ProxyRegistry.isSame(request.tls, tls)
            && request.interception.flatMap { $0.hosts.patterns.isEmpty ? nil : $0 } == interception
    }
}

extension ProxyRegistry {
    /// Returns the authority of the user.
    typealias AuthoritySource = @Sendable () throws(CertificateAuthorityError) -> CertificateAuthority?

    /// Returns the settings of interception for the start of a proxy: the authority is that of the user, or one in memory
    /// for the proxy.
    func interception(of proxy: inout ManagedProxy) throws(APIError) -> Interception? {
        guard let request = proxy.interception else { return nil }
        let now = Int64(Date().timeIntervalSince1970)
        do throws(CertificateAuthorityError) {
            if let authority = try authoritySource() {
                try authority.check(request.hosts, now: now)
                proxy.authority = authority
            } else if proxy.authority.map({ $0.validity.upperBound - now < Self.authorityTimeMin }) ?? true {
                proxy.authority = try CertificateAuthority(
                    for: request.hosts, now: now, days: CertificateAuthority.daysMax)
            }
        } catch {
            throw APIError(.badRequest, RequestWarnings.printable("intercept: \(error)", bytesMax: 600))
        }
        return proxy.authority.map {
            Interception(hosts: request.hosts, authority: $0, upstream: request.upstream)
        }
    }

    /// The validity that an authority must have at the start of a proxy, in seconds.
    private static let authorityTimeMin: Int64 = 7 * 86400
}
