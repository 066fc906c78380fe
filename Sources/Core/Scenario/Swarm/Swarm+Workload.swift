internal import Determinism

/// The actions of a seed.
extension Swarm {
    /// The notes that an action may look back for a note that was created.
    private static let lookbackMax: Int64 = 24
    private static let lookbacks = 3

    /// Returns the notes at the start: the scenario's own, as many as are drawn, and more if they are too few.
    func notes(_ configuration: SwarmConfiguration) -> [Scenario.SeedNote] {
        var notes = Array(base.notes.prefix(configuration.noteCount))
        var number = 1
        while notes.count < configuration.noteCount {
            let row = "x\(number)"
            number += 1
            if base.notes.contains(where: { $0.row == row }) { continue }
            notes.append(Scenario.SeedNote(row: row, title: "Note \(row)", text: "text of \(row)", revision: 1))
        }
        return notes
    }

    /// Returns the actions, kills and steps of clocks, in the order of their times.
    func steps(_ configuration: SwarmConfiguration, _ draws: SwarmDraws) -> [Scenario.Step] {
        var steps: [Scenario.Step] = []
        let rows = notes(configuration).map(\.row)
        var acts: [Scenario.Step] = []
        for number in 0..<Self.actions { acts.append(act(number, rows, acts.last, configuration, draws)) }
        for number in 0..<configuration.killCount {
            let kill = kill(number, acts, draws)
            steps += [kill] + actsAfter(kill, number, acts, draws)
        }
        if configuration.classes.contains(.clockSteps) {
            for number in 0..<2 {
                var random = draws.stream("clock/\(number)")
                let shift = Nanoseconds.milliseconds(random.integer(upToMagnitude: 12 * 3_600_000))
                steps.append(step(random.pick(base.devices).name, .clock(shift: shift), at: time(&random)))
            }
        }
        if configuration.classes.contains(.reusedIDs) { steps += reuses(rows, draws) }
        steps += disks(configuration, draws) + acts
        func key(_ step: Scenario.Step) -> Nanoseconds { if case .at(let time) = step.trigger { time } else { .zero } }
        // Steps are expensive to move.
        let keys = steps.map(key)
        return steps.indices.sorted { (keys[$0], $0) < (keys[$1], $1) }.map { steps[$0] }
    }

    /// Returns the reactions of users to conflicts.
    func reactions(_ configuration: SwarmConfiguration) -> [Scenario.Workload] {
        guard let delay = configuration.resolvesAfter else { return [] }
        let condition = StateCondition(
            row: nil, checks: [.init(key: .icon, value: "conflict", isNegated: false)])
        return [
            Scenario.Workload(
                trigger: .when(device: Scenario.anyDevice, condition, delay: delay), actors: base.devices.map(\.name),
                notes: nil, mix: [.init(.resolve, weight: 1)], location: Self.location)
        ]
    }

    /// Returns a kill: at any time, or between two actions of a chain.
    private func kill(_ number: Int, _ acts: [Scenario.Step], _ draws: SwarmDraws) -> Scenario.Step {
        var random = draws.stream("kill/\(number)")
        let any = step(random.pick(base.devices).name, .kill, at: time(&random))
        let gaps = zip(acts, acts.dropFirst()).compactMap { first, second -> (String, Nanoseconds, Nanoseconds)? in
            guard case (.at(let start), .at(let end)) = (first.trigger, second.trigger), start < end,
                let (actor, before) = first.action, let (next, action) = second.action, next == actor,
                before.row == action.row, before.row != nil, base.devices.contains(where: { $0.name == actor })
            else { return nil }
            return (actor, start, end)
        }
        guard random.bool(probability: 0.5), !gaps.isEmpty else { return any }
        let (actor, start, end) = random.pick(gaps)
        return step(actor, .kill, at: start + Nanoseconds(random.integer(below: (end - start).count)))
    }

    /// Returns what a user does when the app is back: in half of the cases, another change of the note that was changed last.
    private func actsAfter(
        _ kill: Scenario.Step, _ number: Int, _ acts: [Scenario.Step], _ draws: SwarmDraws
    ) -> [Scenario.Step] {
        var random = draws.stream("kill/\(number)/act")
        let isDeletion = random.bool(probability: 0.5)
        let delay = Nanoseconds.milliseconds(random.integer(below: 1 << random.integer(below: 8)))
        guard random.bool(probability: 0.5), case .at(let start) = kill.trigger, let actor = kill.action?.actor,
            let row = acts.last(where: { act in
                guard case .at(let time) = act.trigger else { return false }
                return time <= start && act.action?.actor == actor && act.action?.action.row != nil
            })?.action?.action.row
        else { return [] }
        let time = start + restartDelay(of: actor, draws) + .milliseconds(1) + delay
        if time >= Self.length - .seconds(1) { return [] }
        let text = "\(actor) after kill \(number + 1)"
        return [step(actor, isDeletion ? .delete(row: row) : .edit(row: row, title: nil, text: text), at: time)]
    }

    /// Returns the times in which the disk of a device is full or slow. They end before the restore phase.
    func disks(_ configuration: SwarmConfiguration, _ draws: SwarmDraws) -> [Scenario.Step] {
        guard configuration.classes.contains(.disks) else { return [] }
        return (0..<4).flatMap { number -> [Scenario.Step] in
            var random = draws.stream("disk/\(number)")
            let (device, start) = (random.pick(base.devices).name, time(&random))
            let length = Nanoseconds.milliseconds(200 << random.integer(below: 9))
            let delay = Nanoseconds.milliseconds(20 << random.integer(below: 8))
            let disk = random.bool(probability: 0.7) ? Scenario.Disk.full : .slow(delay)
            let end = min(start + length, Self.length - .seconds(1))
            return [step(device, .disk(disk), at: start), step(device, .disk(.normal), at: end)]
        }
    }

    /// Returns the requests of writers that use an operation id for two requests, and the identifier of a deleted note.
    private func reuses(_ rows: [String], _ draws: SwarmDraws) -> [Scenario.Step] {
        var steps: [Scenario.Step] = []
        for number in 1...2 {
            var random = draws.stream("reuse/\(number)")
            let (row, writer, start) = (random.pick(rows), random.pick(base.writers).name, time(&random))
            func send(
                _ method: String, _ path: String, _ headers: [String: String], _ body: String, after seconds: Int64
            ) {
                let fields = headers.sorted { $0.key < $1.key }.map { Scenario.Argument(name: $0.key, value: $0.value) }
                let request = Scenario.RawRequest(method: method, path: path, headers: fields, body: body)
                steps.append(step(writer, .send(request), at: start + .seconds(seconds)))
            }
            func content(_ uuid: String, _ text: String) -> String {
                "{\(uuid)\"date\": \"2026-03-01T00:00:00.000Z\", \"title\": \"\(writer)\", "
                    + "\"text\": \"\(writer) reuses \(number) \(text)\"}"
            }
            let json = "application/json"
            send("GET", "/api/notes/{\(row)}/", [:], "", after: 0)
            for (attempt, text) in ["one", "two"].enumerated() {
                let headers = [
                    "Content-Type": json, "Idempotency-Key": "reused-\(number)", "If-Match": "\"{\(row).revision}\"",
                ]
                send("PUT", "/api/notes/{\(row)}/", headers, content("", text), after: Int64(1 + attempt))
            }
            // The name of a note that nobody else changes, so that it is deleted for good.
            let name = "u\(number)"
            let created = Scenario.Action.create(row: name, title: writer, text: "\(writer) creates \(number)")
            steps.append(step(writer, created, at: start + .seconds(3)))
            steps.append(step(writer, .delete(row: name), at: start + .seconds(4 + random.integer(below: 8))))
            send(
                "POST", "/api/notes/", ["Content-Type": json, "Idempotency-Key": "again-\(number)"],
                content("\"uuid\": \"{\(name)}\", ", "again"), after: 12 + random.integer(below: 8))
        }
        // What would take place in the restore phase is left out.
        return steps.filter { step in
            if case .at(let time) = step.trigger { time < Self.length - .seconds(1) } else { false }
        }
    }

    func step(_ actor: String, _ action: Scenario.Action, at time: Nanoseconds) -> Scenario.Step {
        Scenario.Step(
            trigger: .at(time), action: (actor, action), mark: nil, isOptional: true, location: Self.location)
    }

    /// Returns a time at which faults and actions take place.
    func time(_ random: inout RandomStream) -> Nanoseconds {
        .milliseconds(1_000 + random.integer(below: Self.length.count / 1_000_000 - 10_000))
    }

    /// Returns the kind of an action, which depends on nothing but its number.
    private func kind(
        _ number: Int, _ configuration: SwarmConfiguration, _ draws: SwarmDraws
    ) -> Scenario.Workload.Kind {
        var random = draws.stream("act/\(number)/kind")
        return Scenario.Workload.kind(configuration.mix, &random)
    }

    /// Returns the name of the note that an action creates.
    private static func created(_ number: Int) -> String { "c\(number + 1)" }

    /// Returns an action; of one in a chain, device, note and time are those of the action before.
    private func act(
        _ number: Int, _ rows: [String], _ last: Scenario.Step?, _ configuration: SwarmConfiguration,
        _ draws: SwarmDraws
    ) -> Scenario.Step {
        let plain = act(number, rows, configuration, draws)
        var random = draws.stream("act/\(number)/chain")
        guard random.integer(below: 16) < Int64(configuration.chainShare), let last, case .at(let start) = last.trigger,
            let (actor, before) = last.action, base.devices.contains(where: { $0.name == actor }),
            let row = before.row, let action = plain.action?.action
        else { return plain }
        let delay = Nanoseconds.milliseconds(random.integer(below: 1 << (4 + random.integer(below: 9))))
        let time = min(start + delay, Self.length - .seconds(1))
        switch action {
        case .edit(_, let title, let text), .editStale(_, let title, let text):
            return step(actor, .edit(row: row, title: title, text: text), at: time)
        case .delete: return step(actor, .delete(row: row), at: time)
        default: return plain
        }
    }

    private func act(
        _ number: Int, _ rows: [String], _ configuration: SwarmConfiguration, _ draws: SwarmDraws
    ) -> Scenario.Step {
        var random = draws.stream("act/\(number)")
        let isWriter = random.integer(below: 16) < Int64(configuration.writerShare)
        let device = random.pick(base.devices).name
        let actor = isWriter ? random.pick(base.writers).name : device
        let shared = random.pick(rows)
        let wantsCreated = random.bool(probability: 0.5)
        let candidates = (0..<Self.lookbacks).map { _ in number - 1 - Int(random.integer(below: Self.lookbackMax)) }
        let padding = Int(random.integer(below: Int64(configuration.textBytesMax)))
        // Small texts are the rule, in all runs.
        let bytes = random.bool(probability: 0.5) ? min(padding, 16) : padding
        let isStale = isWriter && random.integer(below: 4) == 0
        let recent = candidates.first { $0 >= 0 && kind($0, configuration, draws) == .create }.map(Self.created)
        let text = Self.text("\(actor) \(number + 1)", bytes: bytes)
        let action: Scenario.Action
        switch kind(number, configuration, draws) {
        case .create: action = .create(row: Self.created(number), title: "Note \(number + 1)", text: text)
        case .delete: action = .delete(row: recent ?? shared)
        case .sync where !isWriter: action = .sync
        case .edit, .sync, .resolve:
            let row = wantsCreated ? recent ?? shared : shared
            action = isStale ? .editStale(row: row, title: nil, text: text) : .edit(row: row, title: nil, text: text)
        }
        return step(actor, action, at: actTime(number, configuration, draws))
    }

    /// Returns the time of an action: one in each period, or several at about the time of the first.
    private func actTime(
        _ number: Int, _ configuration: SwarmConfiguration, _ draws: SwarmDraws
    ) -> Nanoseconds {
        let first = number / configuration.burst * configuration.burst
        let span = (Self.length.count / 1_000_000 - 10_000) / Int64(Self.actions)
        var random = draws.stream("act/\(first)/time")
        var time = 1_000 + span * Int64(first) + random.integer(below: span * Int64(configuration.burst))
        if number > first {
            var own = draws.stream("act/\(number)/time")
            time += own.integer(below: 500)
        }
        return .milliseconds(time)
    }

    /// Returns a text that no other action has, of about a number of bytes.
    private static func text(_ start: String, bytes: Int) -> String {
        guard bytes > start.utf8.count else { return start }
        let count = bytes - start.utf8.count
        return start + " " + String(decoding: [UInt8](repeating: UInt8(ascii: "x"), count: count), as: UTF8.self)
    }
}
