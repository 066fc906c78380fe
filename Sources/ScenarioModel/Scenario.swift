//  ScenarioModel: the plan of a scenario, the history of a run, and the verdict.
//
//  Owns: scenarios, the director of a run (phases, steps, changes of links, faults), the recorder, histories with their
//  digest, expectations, verdicts.
//
//  Does not own: files (ConfigFiles), clients, servers, links and clocks (the worlds that drive the director).

public import Determinism
public import LinkModel

/// A scenario: devices, their network, faults, steps and expectations.
public struct Scenario: Sendable {
    /// The name, in kebab-case.
    public var name: String
    /// The variant of the file; `nil` for the file itself.
    public var variant: String?
    /// A description in a sentence or two.
    public var about: String
    /// The random seed.
    public var seed: UInt64
    /// The time limit; a run that exceeds it is aborted.
    public var limit: Nanoseconds
    /// The time at which the heal phase begins even if requests are in flight; `nil` if it begins when nothing more can
    /// happen.
    public var healAt: Nanoseconds?
    /// The API contract of the server.
    public var contract: String
    /// Notes on the server at the start.
    public var notes: [SeedNote]
    /// The devices, in the order of the file.
    public var devices: [Device]
    /// The writers, in the order of the file.
    public var writers: [Writer]
    /// The faults.
    public var faults: [Fault]
    /// The steps.
    public var steps: [Step]
    /// The expectations.
    public var expectations: [Expectation]

    /// Creates an empty scenario with defaults.
    public init(name: String) {
        self.name = name
        about = ""
        seed = 1
        limit = .seconds(600)
        contract = "compat"
        notes = []
        devices = []
        writers = []
        faults = []
        steps = []
        expectations = []
    }

    /// The name with that of the variant.
    public var fullName: String { variant.map { "\(name) (\($0))" } ?? name }

    /// A note on the server at the start.
    public struct SeedNote: Hashable, Sendable {
        /// The note's name in the scenario.
        public let row: String
        /// The title.
        public let title: String?
        /// The text.
        public let text: String?
        /// The number of its revision.
        public let revision: Int

        /// Creates a note.
        public init(row: String, title: String?, text: String?, revision: Int) {
            self.row = row
            self.title = title
            self.text = text
            self.revision = revision
        }
    }

    /// A device: a client with a link of its own.
    public struct Device: Sendable {
        /// The device's name.
        public let name: String
        /// The user whose notes it syncs.
        public let user: String
        /// Whether it has the server's notes at the start.
        public let startsSynced: Bool
        /// Its network conditions over time.
        public let network: [NetworkEntry]

        /// Creates a device.
        public init(name: String, user: String, startsSynced: Bool, network: [NetworkEntry]) {
            self.name = name
            self.user = user
            self.startsSynced = startsSynced
            self.network = network
        }
    }

    /// A client that reaches the server directly, without a link.
    public struct Writer: Hashable, Sendable {
        /// The writer's name.
        public let name: String
        /// The user whose notes it writes.
        public let user: String

        /// Creates a writer.
        public init(name: String, user: String) {
            self.name = name
            self.user = user
        }
    }

    /// Conditions of a link, and the time at which they take effect.
    public struct NetworkEntry: Sendable {
        /// The time at which the conditions take effect.
        public let start: Nanoseconds
        /// The conditions.
        public let phase: Timeline.Phase
        /// Whether the device's interface is reported down during an outage.
        public let isSignalled: Bool

        /// Creates an entry.
        public init(at start: Nanoseconds, _ phase: Timeline.Phase, isSignalled: Bool) {
            self.start = start
            self.phase = phase
            self.isSignalled = isSignalled
        }
    }

    /// The loss of a response at the fault point `committed`: the server has executed the request.
    public struct Fault: Hashable, Sendable {
        /// The effect on the connection.
        public enum Action: String, CaseIterable, Hashable, Sendable {
            /// The connection is reset.
            case cut
            /// The connection stays open, and nothing more is delivered.
            case mute
        }

        /// The requests to match.
        public let request: RequestPattern
        /// The number of the matching request, from 1, counted over all devices that the fault may apply to.
        public let nth: Int
        /// The device whose link has the fault; `nil` for any.
        public let device: String?
        /// The effect on the connection.
        public let action: Action
        /// Whether the verdict is inconclusive if the fault never fires.
        public let mustFire: Bool
        /// The fault's location in the file.
        public let location: SourceLocation

        /// Creates a fault.
        public init(
            request: RequestPattern, nth: Int, device: String?, action: Action, mustFire: Bool,
            location: SourceLocation
        ) {
            self.request = request
            self.nth = nth
            self.device = device
            self.action = action
            self.mustFire = mustFire
            self.location = location
        }
    }

    /// A step of the plan: an action, a mark or both, at a time or event.
    public struct Step: Sendable {
        /// The event that triggers a step.
        public enum Trigger: Sendable {
            /// A time from the start.
            case at(Nanoseconds)
            /// A delay after a mark.
            case after(String, delay: Nanoseconds)
            /// A device's state satisfies a condition, not later than `within` from the start.
            case when(device: String, StateCondition, within: Nanoseconds)
        }

        /// The event that triggers the step.
        public let trigger: Trigger
        /// The action and its device or writer; `nil` if the step only sets a mark.
        public let action: (actor: String, action: Action)?
        /// The mark set by the step.
        public let mark: String?
        /// The step's location in the file.
        public let location: SourceLocation

        /// Creates a step.
        public init(
            trigger: Trigger, action: (actor: String, action: Action)?, mark: String?, location: SourceLocation
        ) {
            self.trigger = trigger
            self.action = action
            self.mark = mark
            self.location = location
        }
    }
}

extension Scenario.Step: CustomStringConvertible {
    public var description: String {
        let what = action.map { "\($0.actor) \($0.action)" } ?? "mark \(mark ?? "")"
        switch trigger {
        case .at(let time): return "step: \(what) at \(TimeFormat.seconds(time))"
        case .after(let mark, let delay):
            return "step: \(what) \(delay > .zero ? "\(TimeFormat.seconds(delay)) " : "")after \(mark)"
        case .when(let device, let condition, _): return "step: \(what) when \(device) \(condition)"
        }
    }
}
