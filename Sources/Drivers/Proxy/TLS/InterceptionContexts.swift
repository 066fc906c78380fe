#if TLS
internal import ForwardProxy
internal import HTTPSockets
internal import NIOCore
internal import NIOSSL
internal import Wire

/// The TLS settings of intercepted connections, on both sides of the proxy, which connections share. Used on its proxy's
/// event loop only.
final class InterceptionContexts {
    private struct UpstreamKey: Hashable {
        var protocols: [String]
        var version: TLSVersion?
    }

    private struct ServerKey: Hashable {
        var identity: InterceptionIdentity
        var applicationProtocol: String?
        var version: TLSVersion?
    }

    private let settings: Interception?
    private var upstreams: [UpstreamKey: NIOSSLContext] = [:]
    private var servers: [ServerKey: NIOSSLContext] = [:]

    /// The greatest number of contexts for clients; beyond it they are made anew.
    private static let serversMax = 256
    static let http2 = "h2"
    /// The application protocols that the proxy understands.
    static let protocols = [http2, "http/1.1"]
    private static let version12: UInt16 = 0x0303

    init(_ settings: Interception?) { self.settings = settings }

    /// Returns the application protocols of a client that the proxy understands, in the client's order; `nil` if the client
    /// demands others.
    static func protocols(of hello: ClientHello) -> [String]? {
        // Each once: a list of the client is the key of a context.
        var known: [String] = []
        for name in hello.protocols where protocols.contains(name) && !known.contains(name) { known.append(name) }
        return known.isEmpty && !hello.protocols.isEmpty ? nil : known
    }

    /// Returns whether the proxy can end the TLS of a client: TLS 1.2 or 1.3, for HTTP.
    static func canIntercept(_ hello: ClientHello) -> Bool {
        hello.version >= version12 && protocols(of: hello) != nil
    }

    /// Creates the handler of the connection to an upstream, which offers what the client offers.
    ///
    /// - Parameter certificates: Gets the certificates of the upstream.
    func upstreamHandler(
        _ hello: ClientHello, _ destination: Destination, _ certificates: CertificateChain
    ) throws -> NIOSSLClientHandler {
        let key = UpstreamKey(
            protocols: Self.protocols(of: hello) ?? [], version: hello.version == Self.version12 ? .tlsv12 : nil)
        let context: NIOSSLContext
        if let known = upstreams[key] {
            context = known
        } else {
            context = try (settings?.upstream ?? UpstreamCertificates()).context(
                protocols: key.protocols, versionMax: key.version)
            upstreams[key] = context
        }
        // An address is not sent as a name; the certificate must name it.
        return try certificates.handler(context, serverName: destination.isNumericAddress ? nil : destination.host)
    }

    /// Returns the settings for the clients of a host.
    ///
    /// - Parameters:
    ///   - version: The version of the connection to the upstream, which is the client's greatest one, too.
    ///   - certificates: The certificates of the upstream, whose size those of the proxy have.
    func server(
        _ host: String, _ applicationProtocol: String?, _ version: TLSVersion?, _ certificates: [NIOSSLCertificate]
    ) throws -> NIOSSLContext {
        guard let settings else { throw ChannelError.operationUnsupported }
        let identity = try settings.authority.identity(for: host, upstream: certificates)
        let key = ServerKey(identity: identity, applicationProtocol: applicationProtocol, version: version)
        if let known = servers[key] { return known }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: identity.chain, privateKey: .privateKey(identity.key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.maximumTLSVersion = version
        configuration.applicationProtocols = applicationProtocol.map { [$0] } ?? []
        let context = try NIOSSLContext(configuration: configuration)
        if servers.count >= Self.serversMax { servers = [:] }
        servers[key] = context
        return context
    }
}
#endif
