internal import HTTPSockets
internal import Proxy
internal import Wire

/// The definition of a new proxy in a request or a configuration.
struct ProxyRequest {
    let name: String
    let listen: String
    let upstream: String
    let isEnabled: Bool
    let toxics: [StoredToxic]
    let faults: [StoredFault]
    let link: LinkSetting?
    let seed: UInt64?
    /// The TLS of the upstream; `nil` without TLS.
    let tls: UpstreamTLS?
    /// The interception of TLS; `nil` for none.
    let interception: InterceptionRequest?
    /// The settings of a forward proxy; `nil` for a proxy of one upstream.
    let forward: ForwardSettings?
    /// The protocols that the proxy forwards.
    let protocols: ForwardedProtocols

    init(_ fields: JSONFields) throws(APIError) {
        name = try fields.text("name") ?? ""
        let forward = try ForwardRequest(fields)
        let isForward = forward.isForward ?? false
        let (listen, upstream) = (try fields.text("listen") ?? "", try fields.text("upstream") ?? "")
        // Other machines use a forward proxy only if its creator says so.
        self.listen = isForward && listen.isEmpty ? "127.0.0.1:0" : listen
        self.upstream = isForward ? API.forwardUpstream : upstream
        isEnabled = try fields.bool("enabled") ?? true
        let toxics = try fields.array("toxics") ?? []
        link = try fields.object("link").map { (fields) throws(APIError) in try LinkSetting(fields) }
        seed = try fields.seed()
        if name.isEmpty { throw .missingField("name") }
        if upstream.isEmpty && !isForward { throw .missingField("upstream") }
        try forward.check(isForward: isForward, upstream: upstream)
        if isForward {
            var settings = ForwardSettings()
            forward.apply(to: &settings)
            self.forward = settings
            tls = nil
        } else {
            tls = try UpstreamText.tls(upstream, fields)
            if tls == nil { try UpstreamText.check(upstream) }
            self.forward = nil
        }
        interception = try InterceptionRequest(fields)
        protocols = try Self.protocols(fields) ?? .tcp
        if protocols.contains(.udp) {
            if isForward {
                throw .badBody("a forward proxy forwards TCP and the datagrams of SOCKS 5; leave out 'protocol'")
            }
            if tls != nil { throw .badBody("an upstream with TLS is one of TCP; leave out 'protocol'") }
            guard Proxy.canForwardDatagrams else { throw .badBody("UDP needs Linux") }
        }
        var read: [StoredToxic] = []
        // A body has room for tens of thousands of toxics.
        var names: Set<ByteKey> = []
        for (index, value) in toxics.enumerated() {
            let fields = try JSONFields(value, "toxic \(index + 1)")
            let toxic = try StoredToxic(fields) { names.contains(ByteKey($0)) }
            names.insert(ByteKey(toxic.name))
            read.append(toxic)
        }
        self.toxics = read
        faults = try Self.faults(fields, of: name)
    }

    /// Reads the field `protocol`.
    static func protocols(_ fields: JSONFields) throws(APIError) -> ForwardedProtocols? {
        guard let text = try fields.text("protocol") else { return nil }
        guard let protocols = ForwardedProtocols(text) else {
            throw .badBody("protocol '\(RequestWarnings.printable(text))' must be tcp, udp or tcp,udp")
        }
        return protocols
    }

    private static func faults(_ fields: JSONFields, of name: String) throws(APIError) -> [StoredFault] {
        var read: [StoredFault] = []
        for (index, value) in (try fields.array("faults") ?? []).enumerated() {
            do throws(APIError) {
                read.append(try StoredFault.ofDefinition(value, names: read.map(\.name)))
            } catch {
                throw error.of("fault \(index + 1) of proxy '\(RequestWarnings.printable(name))'")
            }
        }
        return read
    }
}
