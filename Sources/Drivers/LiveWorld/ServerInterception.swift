internal import CommandTraffic
internal import ForwardProxy
internal import Foundation
internal import HTTPSockets
internal import Proxy
internal import Scenario
internal import Worlds

/// The TLS of a run whose server speaks TLS: an authority of the run, whose certificates the links of the devices show to the
/// programs, and the variables by which programs trust it.
struct ServerInterception: Sendable {
    /// The settings of the proxies.
    let settings: Interception
    /// The variables of the programs.
    let variables: [(String, String)]

    /// The name by which programs reach the server. Clients with BoringSSL, such as gRPC, accept no certificate with an
    /// address from an authority that is limited to addresses.
    static let host = "localhost"

    /// Creates the authority, and files with its certificate in the folder of the run.
    init(_ tls: Scenario.ServerTLS?, _ folder: RunFolder) throws {
        let hosts = try InterceptedHosts(parsing: [Self.host])
        let authority = try CertificateAuthority(for: hosts, now: Int64(Date().timeIntervalSince1970))
        settings = Interception(
            hosts: hosts, authority: authority, upstream: try Self.certificates(tls ?? Scenario.ServerTLS()))
        let path = folder.path("ca.pem")
        try Data(authority.certificatePEM.utf8).write(to: URL(filePath: path))
        let trust = try TrustFolder(
            TrustFolder.Authority(
                certificate: authority.certificatePEM, keyDigest: authority.keyDigest,
                javaKeyStore: { authority.javaKeyStore(with: $0) }), in: folder.url.path)
        var variables = [("SLOWLANE_CA", path)] + trust.variables.map { ($0.name, $0.value) }
        if let options = trust.javaOptions {
            let given = ProcessInfo.processInfo.environment["JAVA_TOOL_OPTIONS"]
            variables.append(("JAVA_TOOL_OPTIONS", [given, options].compactMap { $0 }.joined(separator: " ")))
        }
        self.variables = variables
    }

    private static func certificates(_ tls: Scenario.ServerTLS) throws -> UpstreamCertificates {
        var authorities: [UInt8]?
        if let path = tls.path {
            guard let data = FileManager.default.contents(atPath: path) else {
                throw SetupError("'server.tls.ca': cannot read '\(path.prefix(200))'")
            }
            authorities = Array(data)
        }
        let certificates = UpstreamCertificates(authorities: authorities, isVerified: !tls.isInsecure)
        do throws(UpstreamTLSError) {
            try certificates.check()
        } catch {
            throw SetupError("'server.tls.ca': \(error.problem)")
        }
        return certificates
    }
}
