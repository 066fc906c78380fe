internal import Determinism

/// The actions of a seed on devices with apps, drawn from the words of each app. What an app cannot do at its time, such as the
/// edit of a record that does not exist, is left out of the run.
extension Swarm {
    /// What users enter: valid and invalid amounts, answers, sizes of photos, passwords.
    private static let entries = ["7.00", "12", "700.00", "-1", "front", "hello", "40000", "a long word", ""]
    /// What users do with a form that they have opened, in this order.
    private static let formCalls = ["fill", "fill", "fill", "submit", "submit", "retry", "fill", "submit"]
    /// The longest time between the acts of one visit of a screen.
    private static let visitStep: Int64 = 1_500

    /// Returns the actions of the apps' users, kills, steps of clocks, and changes by writers, in the order of their times.
    func appSteps(_ configuration: SwarmConfiguration, _ draws: SwarmDraws) -> [Scenario.Step] {
        var steps: [Scenario.Step] = []
        var rows = base.records.filter { $0.kind != "schedule" }.map(\.row)
        let seeded = rows
        for number in 0..<Self.actions / 2 { steps += visit(number, &rows, seeded, configuration, draws) }
        for number in 0..<configuration.killCount {
            var random = draws.stream("app/kill/\(number)")
            steps.append(step(random.pick(base.devices).name, .kill, at: time(&random)))
        }
        if configuration.classes.contains(.clockSteps) {
            for number in 0..<2 {
                var random = draws.stream("app/clock/\(number)")
                let shift = Nanoseconds.milliseconds(random.integer(upToMagnitude: 36 * 3_600_000))
                steps.append(step(random.pick(base.devices).name, .clock(shift: shift), at: time(&random)))
            }
        }
        if !base.writers.isEmpty, !seeded.isEmpty {
            for number in 0..<4 * configuration.writerShare {
                var random = draws.stream("app/writer/\(number)")
                let (writer, row) = (random.pick(base.writers).name, random.pick(seeded))
                let title = "\(writer) \(number)"
                let action = Scenario.Action.edit(row: row, title: title, text: nil)
                steps.append(step(writer, action, at: time(&random)))
            }
        }
        steps += disks(configuration, draws)
        func key(_ step: Scenario.Step) -> Nanoseconds { if case .at(let time) = step.trigger { time } else { .zero } }
        return steps.enumerated().sorted { (key($0.element), $0.offset) < (key($1.element), $1.offset) }.map(\.element)
    }

    /// Returns a visit of a user: a screen is opened, and something is done there.
    private func visit(
        _ number: Int, _ rows: inout [String], _ seeded: [String], _ configuration: SwarmConfiguration,
        _ draws: SwarmDraws
    ) -> [Scenario.Step] {
        var random = draws.stream("app/act/\(number)")
        let device = random.pick(base.devices)
        guard let words = device.client.app?.vocabulary else { return [] }
        let span = (Self.length.count / 1_000_000 - 10_000) / Int64(Self.actions / 2)
        var start = Nanoseconds.milliseconds(1_000 + span * Int64(number) + random.integer(below: span))
        var steps: [Scenario.Step] = []
        func add(_ action: Scenario.Action) {
            steps.append(step(device.name, action, at: min(start, Self.length - .seconds(1))))
            start = start + .milliseconds(1 + random.integer(below: Self.visitStep))
        }
        func entry() -> String { random.pick(Self.entries) }
        let actions = words.actions.filter { !AppVocabulary.deviceActions.contains($0) && $0 != "call" }
        // A call is as likely as an action.
        let isCall = random.bool(probability: 0.6)
        let row = rows.isEmpty ? nil : random.pick(rows)
        if isCall {
            let call = random.pick(words.calls)
            if call.arguments.contains(AppVocabulary.recordArgument), row == nil { return [] }
            if random.bool(probability: 0.3) { add(.open(row: call.needsArguments ? row : nil)) }
            add(.call(name: call.name, arguments: arguments(of: call, row) { entry() }))
            // What follows in a form or at an error. An input that the form does not have is left out.
            for next in Self.formCalls where call.arguments.isEmpty {
                guard let next = words.call(next), random.bool(probability: 0.5) else { continue }
                for argument in arguments(of: next, row, { entry() }) where random.bool(probability: 0.7) {
                    add(.call(name: next.name, arguments: [argument]))
                }
                if next.arguments.isEmpty { add(.call(name: next.name, arguments: [])) }
            }
            return steps
        }
        switch random.pick(actions) {
        case "create":
            let created = "c\(number + 1)"
            if seeded.contains(created) { return [] }
            if random.bool(probability: 0.8) { add(.open(row: row)) }
            add(.create(row: created, title: "Record \(number + 1)", text: entry()))
            rows.append(created)
        case "edit": if let row { add(.edit(row: row, title: nil, text: entry())) }
        case "delete": if let row { add(.delete(row: row)) }
        case "pin": if let row { add(.pin(row: row)) }
        case "open": add(.open(row: random.bool(probability: 0.7) ? row : nil))
        default: add(.sync)
        }
        return steps
    }

    private func arguments(
        of call: AppVocabulary.Call, _ row: String?, _ entry: () -> String
    ) -> [Scenario.Argument] {
        call.arguments.map { name in
            Scenario.Argument(name: name, value: name == AppVocabulary.recordArgument ? row ?? "" : entry())
        }
    }
}
