internal import ConfigFiles
internal import Determinism
internal import Impairment
internal import LinkModel
internal import Scenario
internal import Wire

/// The scenario with the links and faults of a ``LinkRecording``.
struct RecordedScenario {
    private var scenario = Scenario(name: "recorded")
    private var comments: [String]

    /// The time that the scenario has for its sync after the recording, in seconds.
    private static let limitAfterEnd: Int64 = 600
    /// The greatest number of times that a fault applies.
    private static let timesMax = 1000
    /// The maximum number of bytes of a fault in a comment.
    private static let commentBytesMax = 200
    /// The maximum number of bytes of the name of a header field: YAML limits keys to 1024 characters.
    private static let headerNameBytesMax = 1000
    /// The source location of all parts.
    private static let location = SourceLocation(file: "")

    /// - Parameter isComplete: Whether nothing was left out of the recording.
    init(end: Nanoseconds, isComplete: Bool) {
        scenario.about = "Links and faults that were recorded by 'slowlane server'."
        scenario.limit = min(Timeline.timeMax, end + .seconds(Self.limitAfterEnd))
        comments = ["Recorded for \(QuantityText.time(end))."]
        if !isComplete { comments.append("The recording was too long; a part is missing.") }
    }

    /// The text of the file; `nil` if a link has a trace, which is a file of its own.
    var yaml: String? {
        var scenario = scenario
        let agreeing = scenario.devices.map(\.name) + ["server"]
        scenario.expectations = [Expectation(.agree(agreeing), location: Self.location)]
        return try? ScenarioWriter.text(scenario, comments: comments)
    }

    /// Adds a proxy as a device.
    mutating func add(
        _ track: LinkRecording.Track, device: String, _ links: [(start: Nanoseconds, link: Timeline.NamedConditions)]
    ) {
        comments.append("\(device) is the proxy '\(RequestWarnings.printable(track.proxy))'.")
        let network = links.map { start, link in
            // A proxy cannot take the interface of a device down.
            return Scenario.NetworkEntry(at: start, .hold(link), isSignalled: !link.conditions.canBeSignalled)
        }
        scenario.devices.append(Scenario.Device(name: device, user: "ada", startsSynced: true, network: network))
        for fault in track.faults { add(fault, device: device) }
    }

    // MARK: Faults

    /// Adds a fault, and a step whose request it can match.
    private mutating func add(_ fault: LinkRecording.Fault, device: String) {
        let rule = fault.rule
        let text = RequestWarnings.printable(rule.text(bodyBytesMax: 40), bytesMax: Self.commentBytesMax)
        let note = "\(device) at \(QuantityText.time(fault.time)): \(text)"
        guard rule.handshake == nil, rule.stream == nil, Self.canHave(rule.action) else {
            return comments.append("Not possible here: \(note)")
        }
        let number = scenario.steps.count + 1
        let row = "n\(number)"
        let step: Scenario.Action
        switch rule.method {
        case nil, "PUT": step = .edit(row: row, title: nil, text: "text \(number)")
        case "POST": step = .create(row: row, title: "note \(number)", text: nil)
        case "DELETE": step = .delete(row: row)
        case "GET": step = .sync
        default: return comments.append("No request matches here: \(note)")
        }
        switch step {
        case .edit, .delete:
            scenario.notes.append(.init(row: row, title: "note \(number)", text: "text", revision: 1))
        default: break
        }
        if rule.path != nil { comments.append("Without its path: \(note)") }
        let probability = Probability(partsPerMillion: max(1, Int32((rule.probability * 1e6).rounded())))
        scenario.faults.append(
            Scenario.Fault(
                request: RequestPattern(method: rule.method, row: nil), nth: rule.probability < 1 ? 1 : rule.nth,
                probability: rule.probability < 1 ? probability : nil,
                times: 0...min(rule.times.upperBound, Self.timesMax),
                device: device, point: rule.point.map { .at($0) } ?? .any, bytes: rule.bytes, side: rule.side,
                action: .link(rule.action), location: Self.location))
        // The step starts after the change of the link at the same time.
        scenario.steps.append(
            Scenario.Step(
                trigger: .at(min(Timeline.timeMax, fault.time + .milliseconds(1))), action: (device, step), mark: nil,
                location: Self.location))
    }

    /// Returns whether a text has control characters, which field values of scenarios do not have; HTTP allows tabs.
    private static func hasControlCharacters(_ text: String) -> Bool { text.utf8.contains { $0 < 0x20 || $0 == 0x7F } }

    /// Returns whether a scenario can have an action.
    private static func canHave(_ action: FaultAction) -> Bool {
        switch action {
        case .delay(let time): return time <= Timeline.timeMax
        case .respond(let reply):
            let names = reply.fields.map { ByteKey($0.name.lowercased()) }
            guard let body = String(validating: reply.body, as: UTF8.self) else { return false }
            return ScenarioWriter.canWrite(body) && names.allSatisfy { $0.text.utf8.count <= headerNameBytesMax }
                && Set(names).count == names.count
                && reply.fields.allSatisfy { ScenarioWriter.canWrite($0.value) && !hasControlCharacters($0.value) }
        case .reset, .close, .stall, .throttle: return true
        case .report, .resetStream, .resetConnection, .goAway, .limitStreams, .ignorePings, .ping, .blockWindow,
            .dropTrailers, .truncateHeaders:
            return false
        }
    }
}
