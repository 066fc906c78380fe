public import Determinism
internal import LinkModel

/// What a seed of an exploration draws first: the classes of faults, their rates, and the sizes of a run.
public struct SwarmConfiguration: Sendable {
    /// The seed.
    public let seed: UInt64
    /// The classes that are on.
    public internal(set) var classes: Set<SwarmClass> = []
    /// The API contract of the server.
    public internal(set) var contract: String
    /// The lifetime of access tokens; `nil` if devices send passwords.
    public internal(set) var tokenLife: Nanoseconds?
    /// The delays and limits of the clients.
    public internal(set) var policy: Scenario.ClientSettings
    /// The number of notes on the server at the start: few, so that changes collide.
    public internal(set) var noteCount = 0
    /// The weights of the kinds of actions.
    public internal(set) var mix: [Scenario.Workload.Share] = []
    /// The actions of writers among 16.
    public internal(set) var writerShare = 0
    /// The number of actions at about the same time.
    public internal(set) var burst = 1
    /// The actions among 16 that follow the action before: on the same device, soon, and of the same note.
    public internal(set) var chainShare = 0
    /// The largest number of bytes of a text.
    public internal(set) var textBytesMax = 0
    /// The time after which users resolve conflicts; `nil` if they do not.
    public internal(set) var resolvesAfter: Nanoseconds?
    /// The number of kills, besides those by faults.
    public internal(set) var killCount = 0
    /// The names of the links of each device that work.
    public internal(set) var links: [(device: String, links: [String])] = []
    /// The device that does not come back; `nil` if all do.
    public internal(set) var departed: String?

    /// The configuration in a few lines.
    public var lines: [String] {
        var lines = [
            "seed \(seed): contract \(contract), "
                + (tokenLife.map { "tokens of \(TimeFormat.short($0))" } ?? "passwords")
        ]
        lines.append(
            "classes: " + SwarmClass.allCases.filter(classes.contains).map(\.rawValue).joined(separator: " "))
        if !links.isEmpty {
            let text = links.map { "\($0.device) \($0.links.joined(separator: " "))" }
            lines.append(
                "links: \(text.joined(separator: ", "))" + (departed.map { "; \($0) does not come back" } ?? ""))
        }
        if !mix.isEmpty {
            let weights = mix.filter { $0.weight > 0 }.map { "\($0.kind.rawValue) \($0.weight)" }
            lines.append(
                "workload: \(weights.joined(separator: " ")); \(noteCount) \(noteCount == 1 ? "note" : "notes"), texts up "
                    + "to \(textBytesMax) bytes, bursts of \(burst), \(chainShare) of 16 in chains, \(writerShare) of 16 by writers, "
                    + "\(killCount) kills, conflicts "
                    + (resolvesAfter.map { "resolved after \(TimeFormat.short($0))" } ?? "not resolved"))
        }
        let settings = [
            ("first delay", policy.firstDelay), ("longest delay", policy.longestDelay), ("poll", policy.poll),
            ("timeout", policy.timeout),
        ].compactMap { name, value in value.map { "\(name) \(TimeFormat.duration($0))" } }
        let large = policy.largeBytes.map { ["large from \($0) bytes"] } ?? []
        if !(settings + large).isEmpty { lines.append("policy: \((settings + large).joined(separator: ", "))") }
        return lines
    }
}
