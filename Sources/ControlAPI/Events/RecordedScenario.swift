internal import ConfigFiles
internal import Determinism
internal import Impairment
internal import JSON
internal import LinkModel

/// The text of a scenario with the links and faults of a ``LinkRecording``.
struct RecordedScenario {
    private let end: Nanoseconds
    private var comments: [String]
    private var names: [String] = []
    private var devices: [String] = []
    private var networks: [String] = []
    private var notes: [String] = []
    private var faults: [String] = []
    private var steps: [String] = []

    /// The time that the scenario has for its sync after the recording, in seconds.
    private static let limitAfterEnd: Int64 = 600
    /// The greatest number of times that a fault applies.
    private static let timesMax = 1000
    /// The maximum number of bytes of a fault in a comment.
    private static let commentBytesMax = 200

    /// - Parameter isComplete: Whether nothing was left out of the recording.
    init(end: Nanoseconds, isComplete: Bool) {
        self.end = end
        comments = ["Recorded for \(Self.time(end))."]
        if !isComplete { comments.append("The recording was too long; a part is missing.") }
    }

    /// The text of the file.
    var yaml: String {
        var lines = comments.map { "# \($0)" }
        lines += [
            "scenario: 1", "name: recorded", "about: Links and faults that were recorded by 'slowlane server'.",
            "limit: \(Self.time(end + .seconds(Self.limitAfterEnd)))", "", "server:", "  contract: compat",
        ]
        func add(_ key: String, _ entries: [String]) {
            if !entries.isEmpty { lines += [key] + entries }
        }
        add("  notes:", notes)
        lines.append("")
        add("devices:", devices)
        lines.append("")
        add("network:", networks)
        if !faults.isEmpty { lines.append("") }
        add("faults:", faults)
        if !steps.isEmpty { lines.append("") }
        add("steps:", steps)
        let agreeing = (names + ["server"]).joined(separator: ", ")
        lines += ["", "expect:", "  finally:", "    agree: [\(agreeing)]"]
        return lines.joined(separator: "\n") + "\n"
    }

    /// Adds a proxy as a device. Returns whether all of its links can be written.
    mutating func add(
        _ track: LinkRecording.Track, device: String, _ links: [(start: Nanoseconds, link: Timeline.NamedConditions)]
    ) -> Bool {
        comments.append("\(device) is the proxy '\(RequestWarnings.printable(track.proxy))'.")
        names.append(device)
        devices.append("  \(device): { user: ada, starts: synced }")
        networks.append("  \(device):")
        for (start, link) in links {
            guard let text = Self.entry(link) else { return false }
            networks.append("    \(Self.time(start)): \(text)")
        }
        for fault in track.faults { add(fault, device: device) }
        return true
    }

    // MARK: Links

    /// Returns a link; a proxy cannot take the interface of a device down.
    private static func entry(_ link: Timeline.NamedConditions) -> String? {
        let isOut = link.conditions.up.loss == .one && link.conditions.down.loss == .one
        if let profile = ProfileCatalogue.builtInProfile(named: link.name), profile.conditions == link.conditions {
            return isOut ? "{ link: \(profile.id), signalled: false }" : profile.id
        }
        guard let down = direction(link.conditions.down), let up = direction(link.conditions.up) else { return nil }
        var parts = isOut ? ["signalled: false"] : []
        parts += ["down: \(down)", "up: \(up)"]
        if link.conditions.dnsDelay != .zero { parts.append("dns-delay: \(delay(link.conditions.dnsDelay))") }
        let policy = link.conditions.connectionPolicy
        if policy != .open { parts.append("access: \(policy.rawValue)") }
        return "{ " + parts.joined(separator: ", ") + " }"
    }

    private static func direction(_ conditions: DirectionConditions) -> String? {
        if conditions.trace != nil { return nil }
        var parts: [String] = []
        if let rate = conditions.rate { parts.append("rate: \(rate.bitsPerSecond) bit/s") }
        if conditions.delay != .zero { parts.append("delay: \(delay(conditions.delay))") }
        if let jitter = conditions.jitter {
            let overtaking = jitter.mayOvertake ? " overtaking" : ""
            parts.append("jitter: \(delay(jitter.span)) \(jitter.distribution.rawValue)\(overtaking)")
        }
        if conditions.loss != .zero { parts.append("loss: \(percent(conditions.loss))") }
        if let bursts = conditions.bursts { parts.append("bursts: \(self.bursts(bursts))") }
        if let numbers = conditions.lostPackets { parts.append("lose-packets: \(JSONText.string("\(numbers)"))") }
        if conditions.duplication != .zero { parts.append("duplicate: \(percent(conditions.duplication))") }
        if conditions.reordering != .zero { parts.append("reorder: \(percent(conditions.reordering))") }
        if conditions.queue != .standard { parts.append("queue: \(conditions.queue)") }
        return parts.isEmpty ? "{}" : "{ " + parts.joined(separator: ", ") + " }"
    }

    private static func bursts(_ bursts: BurstLoss) -> String {
        switch bursts {
        case .gilbertElliott(let becomesBad, let becomesGood, let lossInBad, let lossInGood):
            "gemodel \(percent(becomesBad)) \(percent(becomesGood)) \(percent(lossInBad)) \(percent(lossInGood))"
        case .timed(let good, let bad, let lossInBad, let lossInGood):
            "timed \(decimal(good.count, 6))ms \(decimal(bad.count, 6))ms \(percent(lossInBad)) \(percent(lossInGood))"
        }
    }

    // MARK: Faults

    /// Adds a fault, and a step whose request it can match.
    private mutating func add(_ fault: LinkRecording.Fault, device: String) {
        let rule = fault.rule
        let text = RequestWarnings.printable(rule.text(bodyBytesMax: 40), bytesMax: Self.commentBytesMax)
        let note = "\(device) at \(Self.time(fault.time)): \(text)"
        guard let action = Self.action(rule.action) else { return comments.append("Not possible here: \(note)") }
        let number = steps.count + 1
        let row = "n\(number)"
        let step: String
        switch rule.method {
        case nil, "PUT": step = "{ edit: \(row), text: text \(number) }"
        case "POST": step = "{ create: \(row), title: note \(number) }"
        case "DELETE": step = "{ delete: \(row) }"
        case "GET": step = "{ sync: now }"
        default: return comments.append("No request matches here: \(note)")
        }
        if step.hasPrefix("{ edit") || step.hasPrefix("{ delete") {
            notes.append("    \(row): { title: note \(number), text: text }")
        }
        if rule.path != nil || rule.bytes != nil || rule.side != nil {
            comments.append("Without path, bytes and side: \(note)")
        }
        var parts = ["request: \(rule.method ?? "any") any"]
        if rule.chance < 1 {
            let chance = Probability(partsPerMillion: max(1, Int32((rule.chance * 1e6).rounded())))
            parts.append("chance: \(Self.percent(chance ?? .one))")
        } else if rule.nth > 1 {
            parts.append("nth: \(rule.nth)")
        }
        parts.append("times: { min: 0, max: \(min(rule.times.upperBound, Self.timesMax)) }")
        parts += ["to: \(device)", "point: \(rule.point?.rawValue ?? "any")", "then: \(action)"]
        faults.append("  - { \(parts.joined(separator: ", ")) }")
        // The step starts after the change of the link at the same time.
        steps.append("  - { at: \(Self.time(fault.time + .milliseconds(1))), \(device): \(step) }")
    }

    /// Returns an action; `nil` if scenarios do not have it.
    private static func action(_ action: FaultAction) -> String? {
        switch action {
        case .abort: return "cut"
        case .close: return "close"
        case .mute: return "mute"
        case .hold(let time): return "{ hold: \(self.time(time)) }"
        case .trickle(let rate): return "{ trickle: \(rate) }"
        case .reply(let reply):
            guard let body = String(validating: reply.body, as: UTF8.self) else { return nil }
            var parts = ["status: \(reply.status)"]
            let headers = reply.fields.map { "\(JSONText.string($0.name)): \(JSONText.string($0.value))" }
            if !headers.isEmpty { parts.append("headers: { \(headers.joined(separator: ", ")) }") }
            if !body.isEmpty { parts.append("body: \(JSONText.string(body))") }
            return "{ reply: { \(parts.joined(separator: ", ")) } }"
        case .report: return nil
        }
    }

    // MARK: Values

    /// Returns a time in seconds with as many decimals as it needs.
    private static func time(_ time: Nanoseconds) -> String { decimal(max(0, time.count), 9) + "s" }

    private static func delay(_ time: Nanoseconds) -> String { decimal(time.count, 6) + " ms" }

    private static func percent(_ value: Probability) -> String { decimal(Int64(value.partsPerMillion), 4) + "%" }

    /// Returns `count` divided by a power of ten.
    private static func decimal(_ count: Int64, _ decimals: Int) -> String {
        let digits = String(repeating: "0", count: max(0, decimals + 1 - "\(count)".utf8.count)) + "\(count)"
        var fraction = digits.suffix(decimals)
        while fraction.last == "0" { fraction.removeLast() }
        return digits.dropLast(decimals) + (fraction.isEmpty ? "" : ".\(fraction)")
    }
}
