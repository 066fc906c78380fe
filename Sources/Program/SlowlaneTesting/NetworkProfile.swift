internal import ConfigFiles
internal import Determinism
public import LinkModel

/// The conditions of a network: a profile, a timeline, or values. A string literal is the name of a built-in profile or
/// timeline, or the path of a file.
public struct NetworkProfile: Hashable, Sendable, ExpressibleByStringLiteral {
    private enum Source: Hashable {
        case named(String)
        case timeline(String)
        case conditions(Conditions)
    }

    private let source: Source

    private init(_ source: Source) { self.source = source }

    /// Names a built-in profile or timeline, or a file by its path (with a slash or the extension `.yaml`).
    public init(_ nameOrPath: String) { source = .named(nameOrPath) }

    public init(stringLiteral nameOrPath: String) { self.init(nameOrPath) }

    /// Returns the profile with these conditions.
    public static func conditions(_ conditions: Conditions) -> NetworkProfile {
        NetworkProfile(.conditions(conditions))
    }

    /// Returns a timeline, such as `0s: 3g, 20s: 100-loss, 50s: 3g`, the name of a built-in one, or the path of a file.
    public static func timeline(_ text: String) -> NetworkProfile { NetworkProfile(.timeline(text)) }

    /// The conditions or the timeline.
    var resolved: ResolvedLink {
        get throws {
            switch source {
            case .conditions(let conditions): return .conditions(conditions)
            case .timeline(let text): return .timeline(try ProfileCatalogue.timeline(text).timeline)
            case .named(let name):
                switch try ProfileCatalogue.profileOrTimeline(name) {
                case .profile(let profile): return .conditions(profile.conditions)
                case .timeline(let file): return .timeline(file.timeline)
                }
            }
        }
    }
}

/// The built-in profiles of networks and faults; those that imitate tools, such as `chrome-slow-3g`, are given by name.
extension NetworkProfile {
    /// No conditions: every byte passes at once.
    public static let passThrough = conditions(.clear)
    /// Every packet is lost, as in a tunnel.
    public static let loss100: NetworkProfile = "100-loss"
    /// 10 % loss and half a second of delay in each direction.
    public static let veryBadNetwork: NetworkProfile = "very-bad-network"
    /// Edge (2.5G).
    public static let edge: NetworkProfile = "edge"
    /// Edge without delay.
    public static let edgeGood: NetworkProfile = "edge-good"
    /// Edge with loss.
    public static let edgeLossy: NetworkProfile = "edge-lossy"
    /// 2G in the countryside.
    public static let twoGRural: NetworkProfile = "2g-rural"
    /// 2G in a town.
    public static let twoGUrban: NetworkProfile = "2g-urban"
    /// 3G.
    public static let threeG: NetworkProfile = "3g"
    /// 3G without delay.
    public static let threeGGood: NetworkProfile = "3g-good"
    /// 3G with loss.
    public static let threeGLossy: NetworkProfile = "3g-lossy"
    /// LTE.
    public static let lte: NetworkProfile = "lte"
    /// Wi-Fi.
    public static let wifi: NetworkProfile = "wifi"
    /// Wi-Fi without delay.
    public static let wifiGood: NetworkProfile = "wifi-good"
    /// Wi-Fi 802.11ac.
    public static let wifi80211ac: NetworkProfile = "wifi-802.11ac"
    /// A cable modem.
    public static let cable: NetworkProfile = "cable"
    /// DSL.
    public static let dsl: NetworkProfile = "dsl"
    /// A DNS delay of 3 s before each handshake.
    public static let highLatencyDNS: NetworkProfile = "high-latency-dns"
    /// DNS failure: connections are refused.
    public static let dns: NetworkProfile = "dns"
    /// Open connections are aborted, and new ones fail at once.
    public static let offline: NetworkProfile = "offline"
    /// A captive portal responds to HTTP requests.
    public static let portal: NetworkProfile = "portal"
    /// No packet passes from the client to the server.
    public static let uplinkLoss: NetworkProfile = "uplink-loss"
    /// No packet passes from the server to the client.
    public static let downlinkLoss: NetworkProfile = "downlink-loss"
}

/// A profile and its changes over time, as a test declares them.
struct LinkPlan: Sendable {
    let profile: NetworkProfile
    let changes: [(time: Duration, profile: NetworkProfile)]

    /// Returns `nil` if neither is given.
    init?(_ profile: NetworkProfile?, at changes: KeyValuePairs<Duration, NetworkProfile>) {
        if profile == nil && changes.isEmpty { return nil }
        self.profile = profile ?? .passThrough
        self.changes = changes.map { ($0.key, $0.value) }
    }

    /// The conditions or the timeline.
    var resolved: ResolvedLink {
        get throws {
            if changes.isEmpty { return try profile.resolved }
            var entries = [Timeline.Entry(at: .zero, .hold(.init("start", try Self.conditions(of: profile))))]
            for (time, profile) in changes.sorted(by: { $0.time < $1.time }) {
                let conditions = Timeline.NamedConditions("\(time)", try Self.conditions(of: profile))
                entries.append(Timeline.Entry(at: Nanoseconds(time), .hold(conditions)))
            }
            do {
                return .timeline(try Timeline(entries))
            } catch {
                throw NetworkError(description: "the changes of the network cannot be used: \(error.message)")
            }
        }
    }

    private static func conditions(of profile: NetworkProfile) throws -> Conditions {
        guard case .conditions(let conditions) = try profile.resolved else {
            throw NetworkError(description: "'at' takes profiles, not timelines")
        }
        return conditions
    }
}

/// What a proxy applies to its link.
enum ResolvedLink: Sendable {
    case conditions(Conditions)
    case timeline(Timeline)
}
