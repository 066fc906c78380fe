internal import Client
internal import Determinism

/// The settings of the field app.
struct FieldPolicy: Hashable, Sendable {
    /// Whether a metered interface is used: `network: any`. The default, `unmetered`, does not.
    var usesMeteredInterfaces = false
    /// The time in which a run must end: `window`; `nil` for no limit.
    var window: Nanoseconds?
    /// The time from the start of a run to that of the next one: `every`.
    var interval = Nanoseconds.seconds(15 * 60)
    /// The bytes that files may have together: `quota`; `nil` for no limit.
    var quotaBytes: Int?
    /// Whether the app asks for events: `events: on`.
    var asksForEvents = false

    /// The time before the end of its window at which a run stops.
    static let windowReserve = Nanoseconds.seconds(5)
    /// The shortest time between runs.
    static let intervalMin = Nanoseconds.seconds(1)

    init() {}

    /// Creates the policy of an app's settings.
    init(_ configuration: AppConfiguration) {
        usesMeteredInterfaces = configuration.settings["network"] == "any"
        asksForEvents = configuration.settings["events"] == "on"
        if configuration.settings["window"] != nil { window = configuration.time("window", default: .zero) }
        interval = max(Self.intervalMin, configuration.time("every", default: interval))
        quotaBytes = configuration.settings["quota"].flatMap { Int($0) }
    }

    /// Returns whether the app may use an interface.
    func allows(_ interface: NetworkInterface) -> Bool {
        interface.isUp && (usesMeteredInterfaces || !interface.isMetered)
    }

    /// Returns the time at which a run stops; `nil` for no limit.
    func stop(ofRunFrom start: Instant) -> Instant? {
        window.map { start + max(.zero, $0 - Self.windowReserve) }
    }
}

/// The choice of the files that a device keeps within its quota.
enum FieldQuota {
    /// A file as a candidate.
    struct Candidate: Sendable {
        let id: String
        let bytes: Int
        let isPinned: Bool
        /// The number of the user's last opening; 0 for none.
        let opened: Int
    }

    /// Returns the files to keep: the pinned ones first, then those opened last, then the others in the order given. A
    /// file that does not fit is left out.
    static func kept(_ candidates: [Candidate], quotaBytes: Int?) -> [String] {
        guard let quotaBytes else { return candidates.map(\.id) }
        var rest = quotaBytes
        var kept: [String] = []
        let sorted = candidates.enumerated().sorted { left, right in
            let (one, other) = (left.element, right.element)
            if one.isPinned != other.isPinned { return one.isPinned }
            return (other.opened, left.offset) < (one.opened, right.offset)
        }
        for candidate in sorted.map(\.element) where candidate.bytes <= rest {
            rest -= candidate.bytes
            kept.append(candidate.id)
        }
        return kept
    }
}
