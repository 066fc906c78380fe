public import Determinism
public import LinkModel

extension Scenario {
    /// Actions of devices and writers at random times, or whenever a state is reached.
    public struct Workload: Hashable, Sendable {
        /// A kind of action.
        public enum Kind: String, CaseIterable, Hashable, Sendable { case create, edit, delete, resolve, sync }

        /// The events that trigger actions.
        public enum Trigger: Hashable, Sendable {
            /// One action in each period of a window, delayed by up to `jitter` of the period.
            case periodic(from: Nanoseconds, to: Nanoseconds, every: Nanoseconds, jitter: Probability)
            /// A delay after a device's state satisfies a condition.
            case when(device: String, StateCondition, delay: Nanoseconds)
        }

        /// A kind of action and its weight in the choice of a kind.
        public struct Share: Hashable, Sendable {
            /// The kind.
            public let kind: Kind
            /// The weight.
            public let weight: Int

            /// Creates a share.
            public init(_ kind: Kind, weight: Int) {
                self.kind = kind
                self.weight = weight
            }
        }

        /// The maximum number of actions of one entry.
        public static let actionsMax = 10_000

        /// The events that trigger actions.
        public var trigger: Trigger
        /// The devices and writers, of which one performs each action.
        public var actors: [String]
        /// The number of notes that are edited, from the first; `nil` for all that the server has at the start.
        public var notes: Int?
        /// The kinds of actions.
        public var mix: [Share]
        /// The entry's location in the file.
        public var location: SourceLocation

        /// Creates an entry.
        public init(trigger: Trigger, actors: [String], notes: Int?, mix: [Share], location: SourceLocation) {
            self.trigger = trigger
            self.actors = actors
            self.notes = notes
            self.mix = mix
            self.location = location
        }

        /// The number of periods that begin in the window; 0 without a window.
        public var periodCount: Int {
            guard case .periodic(let from, let to, let every, _) = trigger, every > .zero, to > from else { return 0 }
            let count = (to.count - from.count - 1) / every.count + 1
            return Int(min(count, Int64(Self.actionsMax)))
        }

        /// A digest of the entry's values. It names the random streams of the entry, so that other entries do not shift
        /// its draws.
        var digest: UInt64 {
            var parts = actors + mix.map { "\($0.kind.rawValue)=\($0.weight)" } + ["\(notes ?? -1)"]
            switch trigger {
            case .periodic(let from, let to, let every, let jitter):
                parts += ["\(from.count)", "\(to.count)", "\(every.count)", "\(jitter.partsPerMillion)"]
            case .when(let device, let condition, let delay): parts += [device, "\(condition)", "\(delay.count)"]
            }
            return FNV1a.digest(parts.joined(separator: "\u{1F}").utf8)
        }

        /// Returns the prefix of the names of the notes that the entry creates.
        func rowName(ordinal: Int) -> String {
            "w" + String(digest & 0xFFFF_FFFF, radix: 16) + (ordinal > 0 ? "x\(ordinal)" : "")
        }

        /// Draws a kind.
        static func kind(_ mix: [Share], _ random: inout RandomStream) -> Kind {
            let total = mix.reduce(Int64(0)) { $0 + Int64($1.weight) }
            guard total > 0 else { return .sync }
            var draw = random.integer(below: total)
            for share in mix {
                draw -= Int64(share.weight)
                if draw < 0 { return share.kind }
            }
            return .sync
        }
    }

    /// Returns the scenario with the periodic entries of the workload turned into steps. Seed and entry alone determine
    /// the steps of an entry.
    ///
    /// Each period has a random stream of its own, from which time, actor, kind and note are drawn, so that a skipped
    /// action does not shift later ones. An entry edits notes that the server has at the start and notes that the same
    /// actor has created by the same entry, and deletes only the latter. Without such a note, the action is a creation.
    /// Actions at or after the limit or the restore phase, and those of a device that timed steps have killed, are skipped.
    public func materialized(seed: UInt64) -> Scenario {
        var result = self
        result.workload = []
        var counts: [UInt64: Int] = [:]
        for entry in workload {
            guard case .periodic = entry.trigger else {
                result.workload.append(entry)
                continue
            }
            let digest = entry.digest
            let ordinal = counts[digest, default: 0]
            counts[digest] = ordinal + 1
            result.steps += steps(of: entry, digest: digest, ordinal: ordinal, seed: seed)
        }
        return result
    }

    private func steps(of entry: Workload, digest: UInt64, ordinal: Int, seed: UInt64) -> [Step] {
        guard case .periodic(let from, _, let every, let jitter) = entry.trigger else { return [] }
        let name = entry.rowName(ordinal: ordinal)
        let end = min(limit, restoreAt ?? limit)
        let shared = Array((notes.map(\.row) + (fill?.rows ?? [])).prefix(entry.notes ?? .max))
        var created: [String: [String]] = [:]
        var steps: [Step] = []
        for period in 0..<entry.periodCount {
            var random = RandomStream(seed: seed, "workload/\(digest)/\(ordinal)/\(period)")
            let span = every.count / 1_000_000 * Int64(jitter.partsPerMillion)
            let delay = Nanoseconds(span > 0 ? random.integer(below: span) : 0)
            let time = from + Nanoseconds(every.count.multipliedSaturating(by: Int64(period))) + delay
            let actor = entry.actors[Int(random.integer(below: Int64(entry.actors.count)))]
            let kind = Workload.kind(entry.mix, &random)
            let choice = random.next()
            guard time < end, isWithin(time, entry), !isKilled(actor, at: time) else { continue }
            let own = created[actor] ?? []
            let isWriter = writers.contains { $0.name == actor }
            let isSynced = isWriter || devices.contains { $0.name == actor && $0.startsSynced }
            let pool = kind == .delete ? own : (isSynced ? shared : []) + own
            func pick() -> String? { pool.isEmpty ? nil : pool[Int(choice % UInt64(pool.count))] }
            let text = "\(actor) \(period + 1)"
            let action: Action
            if kind == .sync {
                action = .sync
            } else if kind == .edit, let row = pick() {
                action = .edit(row: row, title: nil, text: text)
            } else if kind == .delete, let row = pick() {
                created[actor] = own.filter { $0 != row }
                action = .delete(row: row)
            } else {
                let row = "\(name)-\(period + 1)"
                created[actor, default: []].append(row)
                action = .create(row: row, title: row, text: text)
            }
            steps.append(
                Step(trigger: .at(time), action: (actor: actor, action: action), mark: nil, location: entry.location))
        }
        return steps
    }

    private func isWithin(_ time: Nanoseconds, _ entry: Workload) -> Bool {
        guard case .periodic(let from, let to, _, _) = entry.trigger else { return false }
        return time >= from && time < to
    }

    /// Returns whether steps at fixed times have killed a device and not started it again.
    private func isKilled(_ device: String, at time: Nanoseconds) -> Bool {
        if devices.contains(where: { $0.name == device && $0.restartsAfter != nil }) { return false }
        var last: (time: Nanoseconds, isKill: Bool)?
        for step in steps {
            guard case .at(let planned) = step.trigger, planned <= time, let (actor, action) = step.action,
                actor == device, action == .kill || action == .start
            else { continue }
            if planned >= last?.time ?? .zero { last = (planned, action == .kill) }
        }
        return last?.isKill ?? false
    }
}
