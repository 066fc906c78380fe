//  Scenario: the plan of a scenario, the history of a run, and the verdict.
//
//  Owns: scenarios, the director of a run (phases, steps, changes of links, faults), the recorder, histories with their
//  digest, expectations, verdicts.
//
//  Does not own: files (ConfigFiles), clients, servers, links and clocks (the worlds that drive the director).

public import Determinism

/// A scenario: devices, their network, faults, steps and expectations.
public struct Scenario: Sendable {
    /// The name, in kebab-case.
    public var name: String
    /// The variant of the file; `nil` for the file itself.
    public var variant: String?
    /// A description in a sentence or two.
    public var about: String
    /// Words by which scenarios are selected.
    public var tags: [String] = []
    /// The random seed.
    public var seed: UInt64
    /// The origin of the random seed.
    public var seedOrigin = SeedOrigin.file
    /// The time limit; a run that exceeds it is aborted.
    public var limit: Nanoseconds
    /// The time at which the restore phase begins even if requests are in flight; `nil` if it begins when nothing more can
    /// happen.
    public var restoreAt: Nanoseconds?
    /// The server.
    public var server = ServerKind.builtIn
    /// The TLS of the server; `nil` for a server that speaks HTTP.
    public var tls: ServerTLS?
    /// The API contract of the server.
    public var contract: String
    /// The lifetime of the access tokens with which devices authenticate; `nil` if they send passwords.
    public var tokenLife: Nanoseconds?
    /// Notes on the server at the start.
    public var notes: [SeedNote]
    /// Records of the expense service at the start.
    public var records: [SeedRecord] = []
    /// Generated notes on the server at the start, after ``notes``; `nil` for none.
    public var fill: Fill?
    /// The devices, in the order of the file.
    public var devices: [Device]
    /// The delays and limits of the reference clients that differ from the published policy.
    public var policy = ClientSettings()
    /// The writers, in the order of the file.
    public var writers: [Writer]
    /// The faults.
    public var faults: [Fault]
    /// The steps.
    public var steps: [Step]
    /// Actions at random times, in addition to the steps. ``materialized(seed:)`` turns them into steps.
    public var workload: [Workload] = []
    /// The expectations.
    public var expectations: [Expectation]
    /// The invariants that are checked in addition to the expectations.
    public var invariants = Invariants.standard
    /// The range of seeds that an exploration tries; `nil` if the file gives none.
    public var exploration: Exploration?
    /// The values of the matrix's parameters in this run, in the order of the file.
    public var parameters: [Argument] = []
    /// The locations of the file's top-level keys.
    public var locations: [String: SourceLocation] = [:]

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

    /// The name with that of the variant, and the values of the matrix's parameters.
    public var fullName: String {
        let parts = (variant.map { [$0] } ?? []) + parameters.map { "\($0.name)=\($0.value)" }
        return parts.isEmpty ? name : "\(name) (\(parts.joined(separator: ", ")))"
    }

    /// The subject of a condition that any device may satisfy, in place of a device's name.
    public static let anyDevice = "any"

    /// The origin of a random seed.
    public enum SeedOrigin: Hashable, Sendable {
        /// A number in the file, or the default.
        case file
        /// The commit that is tested.
        case commit
    }

    /// A note on the server at the start.
    public struct SeedNote: Hashable, Sendable {
        /// The note's name in the scenario.
        public var row: String
        /// The title.
        public var title: String?
        /// The text.
        public var text: String?
        /// The number of its revision.
        public var revision: Int

        /// Creates a note.
        public init(row: String, title: String?, text: String?, revision: Int) {
            self.row = row
            self.title = title
            self.text = text
            self.revision = revision
        }
    }

    /// A client that reaches the server directly, without a link.
    public struct Writer: Hashable, Sendable {
        /// The writer's name.
        public var name: String
        /// The user whose notes it writes.
        public var user: String

        /// Creates a writer.
        public init(name: String, user: String) {
            self.name = name
            self.user = user
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
        public var trigger: Trigger
        /// With a state as the trigger: the mark from which the state counts, and from which its limit counts; `nil` for
        /// the start of the run.
        public var since: String?
        /// The action and its device or writer; `nil` if the step only sets a mark.
        public var action: (actor: String, action: Action)?
        /// The mark set by the step.
        public var mark: String?
        /// Whether the run goes on as if the step were not in the scenario if the action is an error, such as an edit of
        /// a note that does not exist, or cannot be performed.
        public var isOptional: Bool
        /// The step's location in the file.
        public var location: SourceLocation

        /// Creates a step.
        public init(
            trigger: Trigger, action: (actor: String, action: Action)?, mark: String?, isOptional: Bool = false,
            location: SourceLocation
        ) {
            self.trigger = trigger
            self.action = action
            self.mark = mark
            self.isOptional = isOptional
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
        case .when(let device, let condition, _):
            return "step: \(what) when \(device) \(condition)" + (since.map { " after \($0)" } ?? "")
        }
    }
}
