public import LinkModel

/// Who does what, what the network does, which answers get lost, and what must be true.
public struct Scenario: Sendable {
    /// Its name, in kebab-case.
    public var name: String
    /// Which variant of the file it is; `nil` is the file itself.
    public var variant: String?
    /// What it shows.
    public var about: String
    /// Where chance comes from.
    public var seed: UInt64
    /// Longer than this it has failed.
    public var limit: Nanoseconds
    /// The server's contract.
    public var contract: String
    /// Notes that are there at the start.
    public var notes: [SeedNote]
    /// The devices, in order.
    public var devices: [Device]
    /// Those who write straight to the server, in order.
    public var writers: [Writer]
    /// Answers that get lost.
    public var faults: [Fault]
    /// What people do.
    public var steps: [Step]
    /// What must be true.
    public var expectations: [Expectation]

    /// Creates a scenario of which nothing is known but the name.
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

    /// Its name with that of the variant.
    public var fullName: String { variant.map { "\(name) (\($0))" } ?? name }

    /// A note at the server.
    public struct SeedNote: Hashable, Sendable {
        /// What the scenario calls it.
        public let row: String
        /// Its title.
        public let title: String?
        /// Its text.
        public let text: String?
        /// How often it has been written.
        public let revision: Int

        /// Creates a note.
        public init(row: String, title: String?, text: String?, revision: Int) {
            self.row = row
            self.title = title
            self.text = text
            self.revision = revision
        }
    }

    /// A device with a client, behind a link of its own.
    public struct Device: Sendable {
        /// What the scenario calls it.
        public let name: String
        /// Whose notes it has.
        public let user: String
        /// Whether it has the server's notes at the start.
        public let startsSynced: Bool
        /// What its link does.
        public let network: [NetworkEntry]

        /// Creates a device.
        public init(name: String, user: String, startsSynced: Bool, network: [NetworkEntry]) {
            self.name = name
            self.user = user
            self.startsSynced = startsSynced
            self.network = network
        }
    }

    /// Somebody who writes without a link between.
    public struct Writer: Hashable, Sendable {
        /// What the scenario calls them.
        public let name: String
        /// Whose notes they write.
        public let user: String

        /// Creates a writer.
        public init(name: String, user: String) {
            self.name = name
            self.user = user
        }
    }

    /// What holds on a link from some time on.
    public struct NetworkEntry: Sendable {
        /// From when on.
        public let start: Nanoseconds
        /// What.
        public let phase: Timeline.Phase
        /// Whether the device is told when nothing gets through.
        public let isSignalled: Bool

        /// Creates an entry.
        public init(at start: Nanoseconds, _ phase: Timeline.Phase, isSignalled: Bool) {
            self.start = start
            self.phase = phase
            self.isSignalled = isSignalled
        }
    }

    /// An answer that gets lost after the server has given it.
    public struct Fault: Hashable, Sendable {
        /// Which request.
        public let request: RequestPattern
        /// Which of those that match, from 1.
        public let nth: Int
        /// On whose link; `nil` is any.
        public let device: String?
        /// Whether the connection is cut, or nothing travels any more.
        public let isCut: Bool
        /// Whether the verdict is open if it never fires.
        public let mustFire: Bool
        /// Where it stands.
        public let place: Place

        /// Creates a fault.
        public init(
            request: RequestPattern, nth: Int, device: String?, isCut: Bool, mustFire: Bool, place: Place
        ) {
            self.request = request
            self.nth = nth
            self.device = device
            self.isCut = isCut
            self.mustFire = mustFire
            self.place = place
        }
    }

    /// Something somebody does.
    public struct Step: Sendable {
        /// When.
        public enum Trigger: Sendable {
            /// At a time.
            case at(Nanoseconds)
            /// So long after a mark.
            case after(String, delay: Nanoseconds)
            /// When a device looks like this, but not later than `within` after the start.
            case when(device: String, StateCondition, within: Nanoseconds)
        }

        /// When.
        public let trigger: Trigger
        /// Who does what; `nil` only marks the moment.
        public let doing: (actor: String, act: Act)?
        /// What the moment is called afterwards.
        public let mark: String?
        /// Where it stands.
        public let place: Place

        /// Creates a step.
        public init(trigger: Trigger, doing: (actor: String, act: Act)?, mark: String?, place: Place) {
            self.trigger = trigger
            self.doing = doing
            self.mark = mark
            self.place = place
        }
    }

    /// What somebody does.
    public enum Act: Hashable, Sendable, CustomStringConvertible {
        /// Makes a note.
        case create(row: String, title: String?, text: String?)
        /// Changes a note.
        case edit(row: String, title: String?, text: String?)
        /// Deletes a note.
        case delete(row: String)
        /// Decides about a conflict.
        case resolve(row: String, title: String?, text: String?)
        /// Looks at the server.
        case sync
        /// Ends the client on the spot.
        case kill
        /// Starts it again.
        case start

        public var description: String {
            switch self {
            case .create(let row, _, _): "creates \(row)"
            case .edit(let row, _, _): "edits \(row)"
            case .delete(let row): "deletes \(row)"
            case .resolve(let row, _, _): "resolves \(row)"
            case .sync: "syncs"
            case .kill: "is killed"
            case .start: "starts again"
            }
        }
    }
}

/// Where something stands in a file.
public struct Place: Hashable, Sendable, CustomStringConvertible {
    /// The file as the caller named it.
    public let file: String
    /// The line, from 1.
    public let line: Int
    /// The column, from 1.
    public let column: Int

    /// Creates a place.
    public init(file: String, line: Int, column: Int) {
        self.file = file
        self.line = line
        self.column = column
    }

    public var description: String { "\(file):\(line):\(column)" }
}

/// Requests by method and note: `PUT n1`, `POST any`, `any`.
public struct RequestPattern: Hashable, Sendable, CustomStringConvertible {
    /// The method; `nil` is any.
    public let method: String?
    /// The note; `nil` is any.
    public let row: String?

    /// Creates a pattern.
    public init(method: String?, row: String?) {
        self.method = method
        self.row = row
    }

    public var description: String {
        guard let method else { return row ?? "any" }
        return "\(method) \(row ?? "any")"
    }
}

/// A time, or the moment of a mark.
public enum TimeReference: Hashable, Sendable, CustomStringConvertible {
    /// From the start.
    case time(Nanoseconds)
    /// When the mark was set.
    case mark(String)

    public var description: String {
        switch self {
        case .time(let time): Moment.text(time)
        case .mark(let name): name
        }
    }
}

/// Times for people.
public enum Moment {
    /// `12.3s`.
    public static func text(_ time: Nanoseconds) -> String {
        let tenths = (time.count + 50_000_000) / 100_000_000
        return "\(tenths / 10).\(tenths % 10)s"
    }

    /// How long something took: `42 ms` below a second, else `12.3s`.
    public static func span(_ time: Nanoseconds) -> String {
        time < .seconds(1) ? "\((time.count + 500_000) / 1_000_000) ms" : text(time)
    }
}

/// Texts for people.
enum Words {
    /// In quotes if it would not be told from what stands around it.
    static func quoted(_ text: String) -> String {
        text.isEmpty || text.contains(where: { $0.isWhitespace || $0 == "," }) ? "'\(text)'" : text
    }
}

/// What a device must look like.
public struct StateCondition: Hashable, Sendable, CustomStringConvertible {
    /// One thing that is looked at.
    public struct Check: Hashable, Sendable {
        /// Which.
        public enum Key: String, CaseIterable, Hashable, Sendable { case icon, text, title, keeps, pending, outbox }
        /// Which.
        public let key: Key
        /// What it must be, or must not be.
        public let value: String
        /// Whether it must not be that.
        public let isNegated: Bool

        /// Creates a check.
        public init(key: Key, value: String, isNegated: Bool) {
            self.key = key
            self.value = value
            self.isNegated = isNegated
        }
    }

    /// The note it is about; `nil` is the device as a whole.
    public let row: String?
    /// What must hold together.
    public let checks: [Check]
    /// From when on.
    public let since: TimeReference?
    /// Until when.
    public let until: TimeReference?

    /// Creates a condition.
    public init(row: String?, checks: [Check], since: TimeReference? = nil, until: TimeReference? = nil) {
        self.row = row
        self.checks = checks
        self.since = since
        self.until = until
    }

    public var description: String {
        var text = row.map { "\($0) " } ?? ""
        text += checks.map { "\($0.key.rawValue) \($0.isNegated ? "not " : "")\(Words.quoted($0.value))" }
            .joined(separator: ", ")
        if let since { text += " since \(since)" }
        if let until { text += " until \(until)" }
        return text
    }
}
