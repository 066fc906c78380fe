import ConfigFiles
import Determinism
import Impairment
import LinkModel
import Scenario
import TestSupport
import Testing

// The testing library has a type of that name too.
import struct Scenario.Expectation
import struct Scenario.SourceLocation

/// Scenarios as text: what is written is read as the same scenario.
@Suite struct ScenarioWriterTests {
    /// Returns the values of a scenario that its file has: no source locations, the expectations of each section in order.
    static func values(_ scenario: Scenario) -> [String] {
        var scenario = scenario
        scenario.variant = nil
        scenario.parameters = []
        scenario.locations = [:]
        // The seed of a commit is not a value of the file.
        if scenario.seedOrigin == .commit { scenario.seed = 1 }
        func rank(_ expectation: Expectation) -> String {
            switch expectation.kind {
            case .traffic: "0"
            case .always: "1"
            case .sometimes, .sometimesFault, .sometimesTraffic: "2"
            case .eventually: "3"
            case .serverCount: "4"
            case .serverRow: "5"
            case .finally(let device, _): "6\(device)"
            case .agree: "7"
            case .threshold: "8"
            }
        }
        let expectations = scenario.expectations.enumerated().sorted {
            (rank($0.element), $0.offset) < (rank($1.element), $1.offset)
        }.map(\.element)
        scenario.expectations = []
        return [text(scenario)] + expectations.map(text)
    }

    /// Returns all values of a value in one line, without source locations and working folders.
    private static func text(_ value: Any) -> String {
        if value is SourceLocation { return "" }
        if let texts = value as? [Scenario.Argument] { return "\(texts.map { ($0.name, $0.value) })" }
        if let program = value as? Scenario.Program { return "\(program.arguments)" }
        if let link = value as? Timeline.NamedConditions {
            let profile = ProfileCatalogue.builtInProfile(named: link.name)
            return "\(profile?.conditions == link.conditions ? link.name : "as given") \(link.conditions)"
        }
        if var condition = value as? StateCondition {
            let checks = condition.checks.map { "\($0.key) \($0.isNegated) \(Array($0.value.utf8))" }.sorted()
            condition = StateCondition(row: condition.row, checks: [], since: condition.since, until: condition.until)
            return "\(condition) \(checks)"
        }
        if let text = value as? String { return "\(Array(text.utf8))" }
        let mirror = Mirror(reflecting: value)
        guard !mirror.children.isEmpty else { return "\(value)" }
        let parts = mirror.children.map { child in "\(child.label ?? ""):\(text(child.value))" }
        return "\(type(of: value))(\(parts.joined(separator: " ")))"
    }

    private static func check(_ scenario: Scenario) throws {
        let written = try ScenarioWriter.text(scenario, comments: ["a comment"])
        let read: Scenario
        do {
            read = try ScenarioFile(parsing: written, file: "written.yaml").scenario
        } catch {
            Issue.record("\(error)\n\(written)")
            return
        }
        let (found, expected) = (values(read), values(scenario))
        #expect(found.count == expected.count)
        for (found, expected) in zip(found, expected) where found != expected {
            let difference = zip(found, expected).prefix { $0 == $1 }.count
            Issue.record(
                "\(found.dropFirst(max(0, difference - 60)).prefix(200))\n\(expected.dropFirst(max(0, difference - 60)).prefix(200))\n\(written)"
            )
        }
        #expect(try ScenarioWriter.text(read, comments: ["a comment"]) == written)
        // Conditions as keys, of a flap, are valid but have no canonical form.
        if !written.contains(" }: ") {
            #expect(try ScenarioFormatter.format(written, file: "written.yaml") == written)
        }
    }

    // MARK: Files

    /// Without `SLOWLANE_SEEDS` a few.
    private static let builtIn =
        TestSettings.isSoak
        ? ScenarioCatalogue.names : ["commuter-30-minutes", "operation-ids", "upgrade-with-queue", "validators"]

    @Test(arguments: builtIn) func aBuiltInScenarioIsReadAsItIsWritten(_ name: String) throws {
        let runs = try ScenarioCatalogue.scenario(name).runs(ofVariant: nil)
        for run in TestSettings.isSoak ? runs : Array(runs.prefix(1)) { try Self.check(run) }
    }

    @Test(arguments: ScenarioExamples.names) func anExampleIsReadAsItIsWritten(_ name: String) throws {
        let file = try ScenarioFile(parsing: try ScenarioExamples.text(name), file: "\(name).yaml")
        for run in file.allRuns { try Self.check(run) }
    }

    @Test func aScenarioWithoutSettingsIsShort() throws {
        var scenario = Scenario(name: "short")
        let wifi = try #require(ProfileCatalogue.builtInProfile(named: "wifi"))
        let location = SourceLocation(file: "")
        scenario.devices = [
            .init(
                name: "A", user: "ada", startsSynced: true,
                network: [.init(at: .zero, .hold(.init("wifi", wifi.conditions)), isSignalled: true)])
        ]
        scenario.steps = [
            .init(
                trigger: .at(.milliseconds(200_000)),
                action: (actor: "A", action: .create(row: "n1", title: nil, text: "3 l")), mark: nil, location: location
            )
        ]
        scenario.expectations = [Expectation(.agree(["A", "server"]), location: location)]
        #expect(
            try ScenarioWriter.text(scenario) == """
                scenario: 1
                name: short

                devices:
                  A: { user: ada }

                network:
                  A: { 0s: wifi }

                steps:
                  - { at: 3m20s, A: { create: n1, text: "3 l" } }

                expect:
                  finally:
                    agree: [A, server]

                """)
    }

    @Test func whatTheFormatDoesNotHaveIsRefused() throws {
        var scenario = Scenario(name: "odd")
        scenario.devices = [.init(name: "A", user: "ada", startsSynced: true, network: [])]
        let agree = Expectation(
            .agree(["A", "server"]), location: SourceLocation(file: ""))
        scenario.expectations = [agree, agree]
        #expect(throws: ScenarioWriter.UnsupportedError.self) { try ScenarioWriter.text(scenario) }
        scenario.expectations = [agree]
        scenario.seed = .max
        #expect(throws: ScenarioWriter.UnsupportedError.self) { try ScenarioWriter.text(scenario) }
        for text in ["a\u{0}", "\u{FEFF}a"] {
            scenario.notes = [.init(row: "n1", title: nil, text: text, revision: 1)]
            scenario.seed = 1
            #expect(throws: ScenarioWriter.UnsupportedError.self) { try ScenarioWriter.text(scenario) }
        }
        scenario.notes = []
        scenario.seed = 9_007_199_254_740_991
        #expect(try ScenarioWriter.text(scenario).contains("seed: 9007199254740991"))
    }

    // MARK: Random scenarios

    @Test(arguments: randomSeeds(12)) func aRandomScenarioIsReadAsItIsWritten(_ seed: UInt64) throws {
        var random = RandomScenario(seed: seed)
        try Self.check(random.scenario())
    }
}

/// Random scenarios with values that a file may have.
private struct RandomScenario {
    private var generator: SeededGenerator
    private let location = SourceLocation(file: "")

    /// The time of the mark `m0`, at which windows end.
    private var markTime = Nanoseconds.zero

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &generator) }
    private mutating func isTrue() -> Bool { .random(using: &generator) }

    private mutating func time(_ most: Int64 = 300) -> Nanoseconds {
        switch number(0...3) {
        case 0: .seconds(Int64(number(0...Int(most))))
        case 1: .milliseconds(Int64(number(0...Int(most) * 1000)))
        default: Nanoseconds(.random(in: 0...most * 1_000_000_000, using: &generator))
        }
    }

    private mutating func text() -> String {
        let pieces = [
            "a", "null", "true", "3 l", "Äpfel", " ", "'", "\"", "#", ": ", "\n", "\t", "\\", "{", "]", "&x", "*x", "🙂",
            "\u{1}", "\u{1F}", "\u{85}", "\u{2028}", "b\u{FEFF}", "\u{FFFE}", "-", "? ", "%", "!", "|", ">", "e\u{301}",
            "~", ",",
        ]
        return (0..<number(0...4)).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
    }

    private mutating func link() -> Timeline.NamedConditions {
        if isTrue(), let profile = ProfileCatalogue.builtIn.randomElement(using: &generator) {
            return .init(profile.id, profile.conditions)
        }
        var conditions = RandomConditions.conditions(&generator)
        for path in [\Conditions.up, \Conditions.down] {
            var direction = conditions[keyPath: path]
            direction.trace = nil
            // Units of the format: microseconds of delays.
            direction.delay = Nanoseconds(direction.delay.count / 1000 * 1000)
            if direction.delay == .zero, direction.jitter == nil { direction.reordering = .zero }
            if let jitter = direction.jitter {
                let span = Nanoseconds(jitter.span.count / 1000 * 1000)
                direction.jitter =
                    span > .zero
                    ? Jitter(span: span, distribution: jitter.distribution, mayOvertake: jitter.mayOvertake) : nil
                if direction.jitter == nil, direction.delay == .zero { direction.reordering = .zero }
            }
            if direction.bursts != nil { direction.loss = .zero }
            conditions[keyPath: path] = direction
        }
        return .init("as given", conditions)
    }

    private mutating func network() -> [Scenario.NetworkEntry] {
        var start = Nanoseconds.zero
        return (0..<number(1...4)).map { _ in
            defer { start = start + .seconds(1) + time(60) }
            var phase = Timeline.Phase.hold(link())
            if isTrue() {
                let intervals = (0..<number(1...2)).map { _ in Timeline.Interval(link(), .seconds(1) + time(20)) }
                phase = .flap(intervals, jitter: isTrue() ? .zero : Probability(partsPerMillion: 123_456) ?? .zero)
            }
            let signalling: [Scenario.NetworkEntry.Signalling] = [.always, .never, .sometimes]
            return Scenario.NetworkEntry(
                at: start, phase, signalling: signalling[number(0...2)],
                interface: isTrue() ? nil : Scenario.NetworkEntry.Interface.allCases.randomElement(using: &generator))
        }
    }

    private mutating func fault() -> Scenario.Fault {
        let actions: [Scenario.Fault.Action] = [
            .link(.reset), .link(.close), .link(.stall), .link(.delay(time() + Nanoseconds(1))), .kill(device: nil),
            .kill(device: "A"),
            .link(.throttle(bytesPerSecond: Int64(number(1...5000)))), .link(.respond(.portal)),
            .link(
                .respond(
                    FaultResponse(
                        status: number(200...599), fields: [.init("X-A", "b c")], body: Array(text().utf8)))),
        ]
        let isDrawn = isTrue()
        let least = number(0...3)
        var fault = Scenario.Fault(
            request: RequestPattern(method: isTrue() ? nil : "PUT", row: isTrue() ? nil : "n1"),
            nth: isDrawn ? 1 : number(1...9),
            probability: isDrawn ? Probability(partsPerMillion: Int32(number(1...1_000_000))) : nil,
            times: least...max(1, least + number(0...3)), device: isTrue() ? nil : "B",
            action: actions[number(0...actions.count - 1)], location: location)
        let points = fault.points + [.any]
        fault.point = points[number(0...points.count - 1)]
        // Some faults can have a position or a side.
        var other = fault
        other.bytes = isTrue() ? Int64(number(0...9000)) : nil
        other.side = isTrue() ? FaultSide.allCases[number(0...2)] : nil
        return other.problem == nil ? other : fault
    }

    private mutating func step(_ index: Int) -> Scenario.Step {
        let actions: [Scenario.Action] = [
            .create(row: "c\(index)", title: isTrue() ? nil : text(), text: isTrue() ? nil : text()),
            .edit(row: "n1", title: nil, text: text()), .edit(row: "n1", title: text(), text: nil),
            .delete(row: "n2"), .resolve(row: "n1", title: nil, text: text()), .choose(row: "n1", .theirs),
            .keep(row: "n1"), .open(row: nil), .open(row: "n2"), .sync,
            .clock(shift: isTrue() ? time() : .zero - time()),
            .call(name: "retry", arguments: [.init(name: "note", value: "n1")]),
            .send(
                .init(
                    method: "PUT", path: "/api/notes/{n1}/",
                    headers: [.init(name: "If-Match", value: "\"{n1.revision}\"")],
                    body: text())),
        ]
        let action: (actor: String, action: Scenario.Action) =
            isTrue()
            ? (actor: "A", action: actions[number(0...actions.count - 1)])
            : (actor: "W", action: .editStale(row: "n1", title: nil, text: text()))
        let time = time()
        if index == 0 { markTime = time }
        return Scenario.Step(
            trigger: index > 0 && isTrue()
                ? .after("m\(index - 1)", delay: isTrue() ? .zero : self.time(5)) : .at(time),
            action: action, mark: "m\(index)", location: location)
    }

    private mutating func condition() -> StateCondition {
        let keys: [(StateCondition.Check.Key, String)] = [
            (.icon, "conflict"), (.text, text()), (.title, text()), (.keeps, text()), (.pending, "true"),
            (.outbox, "\(number(0...9))"), (.strike, "false"), (.opacity, "0.5"),
        ]
        let checks = keys.filter { _ in isTrue() }.map { key, value in
            StateCondition.Check(key: key, value: value, isNegated: isTrue())
        }
        return StateCondition(
            row: "n1", checks: checks.isEmpty ? [.init(key: .present, value: "true", isNegated: false)] : checks,
            since: isTrue() ? nil : .time(min(time(), markTime)), until: isTrue() ? nil : .mark("m0"))
    }

    private mutating func expectations() -> [Expectation.Kind] {
        let least = number(0...5)
        let traffic = Expectation.Traffic(
            request: RequestPattern(method: nil, row: isTrue() ? nil : "n2"), from: isTrue() ? nil : "A",
            seen: isTrue() ? .server : .proxy, between: isTrue() ? nil : (.time(min(time(), markTime)), .mark("m0")),
            count: isTrue() ? .budget(min: least) : .range(least...(isTrue() ? .max : least + number(0...2))),
            responses: isTrue() ? nil : [.status(409), .statusClass(2), .lost, .none],
            same: isTrue() ? [] : [.body, .key],
            during: isTrue() ? nil : .flap,
            order: isTrue() ? nil : [.init(method: nil, row: "n1"), .init(method: "POST", row: nil)],
            duplicates: isTrue() ? nil : 0, bytesDown: isTrue() ? nil : 0...number(1...5_000_000),
            bytesUp: isTrue() ? nil : 10...Int.max)
        return [
            .serverRow(row: "n1", revision: isTrue() ? nil : 3, title: nil, text: text()), .serverCount(number(0...9)),
            .finally(device: "A", condition()), .finally(device: "B", condition()), .finally(device: "A", condition()),
            .always(device: "A", condition()), .always(device: "any", condition()), .traffic(traffic),
            .sometimes(device: "B", condition()), .sometimesTraffic(traffic),
            .sometimesFault(
                .init(
                    point: isTrue() ? nil : .at(.beforeResponse),
                    request: isTrue() ? nil : .init(method: "PUT", row: nil))
            ),
            .eventually(device: "A", condition(), isTrue() ? .by(time()) : .after("m0", within: time())),
            .agree(["A", "B", "server"]),
            .threshold(Threshold(.saveToSynced, [.init(.p50, max: time().count), .init(.max, max: time().count)])),
            .threshold(Threshold(.attemptsPerWrite, [.init(.max, max: 4)])),
        ].shuffled(using: &generator)
    }

    mutating func scenario() -> Scenario {
        var scenario = Scenario(name: "random")
        scenario.about =
            isTrue() ? text() : "A sentence that is longer than one line. " + String(repeating: "word ", count: 40)
        scenario.seed = isTrue() ? 1 : UInt64(number(0...1_000_000_000_000))
        scenario.contract = ["orig", "compat", "strict"][number(0...2)]
        scenario.notes = ["n1", "n2"].map {
            .init(row: $0, title: isTrue() ? nil : text(), text: text(), revision: number(1...5))
        }
        if isTrue() { scenario.fill = .init(notes: number(1...50), bytes: number(1...5000)) }
        scenario.devices = ["A", "B"].map { name in
            .init(
                name: name, user: "ada", startsSynced: isTrue(), client: isTrue() ? .reference : .legacy,
                network: network())
        }
        scenario.writers = [.init(name: "W", user: "ada")]
        scenario.faults = (0..<number(0...4)).map { _ in fault() }
        scenario.steps = (0..<number(3...8)).map { step($0) }
        scenario.steps.append(
            .init(
                trigger: .at(.zero), action: (actor: "A", action: .edit(row: "n1", title: nil, text: "x")), mark: nil,
                location: location))
        // Every fault can match: both devices change the note.
        scenario.steps.append(
            .init(
                trigger: .when(
                    device: "any", .init(row: "n1", checks: [.init(key: .icon, value: "none", isNegated: false)]),
                    within: .seconds(400)),
                action: (actor: "B", action: .edit(row: "n1", title: nil, text: "y")), mark: nil, location: location))
        if isTrue() {
            scenario.workload = [
                .init(
                    trigger: .periodic(
                        from: time(), to: .seconds(400), every: .seconds(20),
                        jitter: Probability(partsPerMillion: 5) ?? .zero),
                    actors: ["A", "W"], notes: isTrue() ? nil : 3,
                    mix: [.init(.create, weight: 2), .init(.edit, weight: 6)],
                    location: location)
            ]
        }
        scenario.expectations = expectations().map { Expectation($0, location: location) }
        if isTrue() { scenario.invariants = .init(adding: [.order], dropping: [.noFalseConflict]) }
        if isTrue() {
            scenario.exploration = .init(seeds: 50, vary: isTrue() ? [.config] : [.workload, .network, .faults])
        }
        return scenario
    }
}
