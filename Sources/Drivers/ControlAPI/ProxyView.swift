internal import ForwardProxy
internal import HTTPSockets
internal import Impairment
internal import LinkModel
internal import Proxy
internal import Wire

/// A proxy with its status, as responses show them.
struct ProxyView {
    let proxy: ManagedProxy
    /// The status; `nil` while the proxy is disabled.
    let status: ProxyStatus?

    init(_ proxy: ManagedProxy, _ status: ProxyStatus?) {
        self.proxy = proxy
        self.status = status
    }

    var link: LinkView {
        LinkView(
            setting: proxy.link, conditions: status?.link.conditions ?? proxy.link.initialConditions,
            resetAt: proxy.resetAt)
    }

    private static let none = PerDirection(up: 0, down: 0)

    static let shape = JSONShape<ProxyView>(
        "Proxy",
        [
            .required("name", \.proxy.name, .text),
            .required("listen", \.proxy.listen, .text),
            .required("upstream", \.proxy.upstream, .text),
            .required("enabled", \.proxy.isListening, .bool),
            .required("seed", \.proxy.seed, .count),
            .required("link", \.link, LinkView.shape.form),
            .required("connections_open", { $0.status?.connectionsOpen ?? 0 }, .count),
            .required("connections_accepted", { $0.status?.connectionsAccepted ?? 0 }, .count),
            .required("dials_failed", { $0.status?.dialsFailed ?? 0 }, .count),
            .required("sent_bytes", { $0.status?.link.bytesCarried ?? none }, .pair(of: .count)),
            .required("held_bytes", { $0.status?.link.bytesHeld ?? 0 }, .count),
            .required("queue_packets", { $0.status?.link.queueDepth ?? none }, .pair(of: .count)),
            .required("timeline", { TimelineView($0.proxy, $0.status) }, TimelineView.form),
            .required("outage", \.proxy.outage, API.outage.form),
            .required("faults", \.proxy.faults.count, .count, "Number of faults."),
            .required("faults_fired", { $0.status?.faultRules.reduce(0) { $0 + $1.fired } ?? 0 }, .count),
            .optional(
                "protocol", { $0.proxy.protocols == .tcp ? nil : "\($0.proxy.protocols)" }, .words(["udp", "tcp,udp"]),
                "Present if the proxy forwards datagrams."),
            .optional(
                "udp", { $0.proxy.protocols == .tcp ? nil : $0.status?.datagrams ?? DatagramStatus() },
                DatagramStatus.shape.form, "The datagrams, if the proxy forwards them."),
            .optional(
                "upstream_tls", { $0.status?.upstreamTLS }, UpstreamTLSStatus.shape.form,
                "The TLS of the upstream, if its address begins with https://."),
            .optional(
                "intercept", { $0.proxy.interception == nil ? nil : $0 }, interception.form,
                "Present if TLS is intercepted."),
            .optional(
                "forward", { $0.proxy.forward == nil ? nil : true }, .bool,
                "Present and true if the proxy is a forward proxy."),
            .optional(
                "allow", { $0.proxy.forward?.clientsAllowed.map(\.description) }, .array(of: .text),
                "The networks from which clients of a forward proxy may connect; empty for all."),
            .optional(
                "credentials", { $0.proxy.forward.map { $0.credentials != nil } }, .bool,
                "Whether clients of a forward proxy must give a user and a password, which are never shown."),
        ])

    private static let interception = JSONShape<ProxyView>([
        .required(
            "hosts", { ($0.proxy.interception?.hosts.patterns ?? []).map(\.description) }, .array(of: .text),
            "The intercepted hosts; '*' for all."),
        .required(
            "authority", { $0.proxy.authority?.name }, .orNull(.text),
            "The name of the authority; null before the first start."),
        .required(
            "sha256", { $0.proxy.authority?.fingerprint }, .orNull(.text), "The digest of its certificate."),
        .required(
            "certificate", { $0.proxy.authority?.certificatePEM }, .orNull(.text),
            "The certificate that clients must trust, as PEM text."),
        .required(
            "connections", { $0.status?.interception?.connections ?? 0 }, .count,
            "Connections whose client has completed a handshake with the proxy since the start."),
        .required(
            "pinned_hosts", { $0.status?.interception?.pinnedHosts ?? [] }, .array(of: .text),
            "Hosts whose clients have not accepted the certificate: their connections pass as they are."),
    ])

    /// The faults of a proxy.
    static let faults = JSONShape<ProxyView>(
        "Faults",
        [
            .required("faults", \.faults, .array(of: StoredFault.shape.form)),
            .required(
                "connections_without_faults", { $0.status?.connectionsWithoutFaults ?? 0 }, .count,
                "Open connections to which faults do not apply: the fast path has forwarded bytes of them, or they are "
                    + "not HTTP."),
            .required(
                "tls_connections", { $0.status?.opaqueTLS.connections ?? 0 }, .count,
                "Connections with TLS, into which rules about requests cannot see."),
            .required(
                "tls_server_names", { $0.status?.opaqueTLS.serverNames ?? [] }, .array(of: .text),
                "The first names that their clients have sent (SNI)."),
        ])

    private var faults: [StoredFault.Counted] {
        let rules = Dictionary(
            (status?.faultRules ?? []).map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
        return proxy.faults.map { fault in (fault, fault.number.flatMap { rules[$0] }) }
    }
}

extension DatagramStatus {
    fileprivate static let shape = JSONShape<DatagramStatus>([
        .required("sessions", \.sessions, .count),
        .required("sessions_opened", \.counters.sessionsOpened, .count),
        .required("sessions_evicted", \.counters.sessionsEvicted, .count),
        .required("received", \.counters.received, .pair(of: .count)),
        .required("sent", \.counters.sent, .pair(of: .count)),
        .required("over_mtu", \.counters.overMTU, .count),
        .required("blackholed", \.counters.blackholed, .count),
        .required("unreachable", \.counters.unreachable, .count),
        .required("discarded", \.discarded, .count),
        .required("refuses", \.isRefusing, .bool),
    ])
}

extension UpstreamTLSStatus {
    fileprivate static let shape = JSONShape<UpstreamTLSStatus>([
        .required("verified", \.isVerified, .bool, "Whether the certificate of the upstream is verified."),
        .required("rewritten", \.rewritings, RewritingCounts.shape.form, "Changed messages since the start."),
    ])
}

extension RewritingCounts {
    fileprivate static let shape = JSONShape<RewritingCounts>([
        .required("host", \.hosts, .count), .required("location", \.locations, .count),
        .required("cookie", \.cookies, .count),
    ])
}

extension ConnectionStatus {
    static let shape = JSONShape<ConnectionStatus>(
        "Connection",
        [
            .required("number", \.number, .count),
            .required("client", \.client?.description, .orNull(.text)),
            .required(
                "server_name", \.serverName, .orNull(.text), "The name that the client of TLS has sent (SNI)."),
            .required("age_ms", \.age, .milliseconds()),
            .required("received_bytes", \.bytesRead, .pair(of: .count)),
            .required("held_bytes", \.bytesHeld, .pair(of: .count)),
            .required(
                "protocol", { $0.isDatagrams ? "udp" : "tcp" }, .words(["tcp", "udp"]),
                "`udp` for a session of datagrams."),
        ])
}
