public import Determinism
public import LinkModel

extension Scenario {
    /// A device: a client with a link of its own.
    public struct Device: Sendable {
        /// The client of a device.
        public enum Client: Hashable, Sendable {
            /// Slowlane's sync client.
            case reference
            /// A client with the defects of its time.
            case legacy
            /// An app of Slowlane's with offline patterns.
            case app(App)
            /// A program.
            case run(Program, adapter: Adapter)

            /// Whether it is a program.
            var isProgram: Bool { if case .run = self { true } else { false } }

            /// The app; `nil` for another client.
            public var app: App? { if case .app(let app) = self { app } else { nil } }

            /// The header field that marks the responses of its service.
            var markerField: String { app?.markerField ?? "Slowlane-Notes" }

            /// Whether it is a program that acts on its own.
            var actsOnItsOwn: Bool { if case .run(_, adapter: .none) = self { true } else { false } }
        }

        /// How the runner talks to a program.
        public enum Adapter: String, CaseIterable, Hashable, Sendable {
            /// With JSON lines on the program's standard input and output.
            case lines
            /// Not at all.
            case none
        }

        /// The device's name.
        public var name: String
        /// The user whose notes it syncs.
        public var user: String
        /// Whether it has the server's notes at the start.
        public var startsSynced: Bool
        /// The client.
        public var client: Client
        /// The settings of an app.
        public var settings: [Argument]
        /// Its network conditions over time.
        public var network: [NetworkEntry]
        /// The time after which a client that was killed starts again; `nil` if a step or the restore phase starts it.
        public var restartsAfter: Nanoseconds?
        /// Whether the restore phase restores the link and starts the client. The others must converge without a device
        /// that is not restored.
        public var isRestored: Bool
        /// The device's location in the file.
        public var location: SourceLocation

        /// Creates a device.
        public init(
            name: String, user: String, startsSynced: Bool, client: Client = .reference, settings: [Argument] = [],
            network: [NetworkEntry],
            restartsAfter: Nanoseconds? = nil, isRestored: Bool = true,
            location: SourceLocation = SourceLocation(file: "")
        ) {
            self.name = name
            self.user = user
            self.startsSynced = startsSynced
            self.client = client
            self.settings = settings
            self.network = network
            self.restartsAfter = restartsAfter
            self.isRestored = isRestored
            self.location = location
        }

        /// Returns whether an entry of the network with `flap` is in effect at a time.
        func isFlapping(at time: Nanoseconds) -> Bool {
            let entry = network.last { $0.start <= time } ?? network.first
            return if case .flap? = entry?.phase { true } else { false }
        }
    }

    /// Conditions of a link, and the time at which they take effect.
    public struct NetworkEntry: Sendable {
        /// Whether the device's interface is reported down during an outage.
        public enum Signalling: Hashable, Sendable {
            /// In every outage.
            case always
            /// In no outage.
            case never
            /// In outages chosen at random: each with a probability of 50 %.
            case sometimes
        }

        /// The kind of a network interface.
        public enum Interface: String, CaseIterable, Hashable, Sendable { case cellular, wifi, wired }

        /// The time at which the conditions take effect.
        public var start: Nanoseconds
        /// The conditions.
        public var phase: Timeline.Phase
        /// Whether the device's interface is reported down during an outage.
        public var signalling: Signalling
        /// The kind of interface that the client sees; `nil` if it does not change.
        public var interface: Interface?
        /// The entry's location in the file.
        public var location: SourceLocation

        /// Whether the device's interface is reported down during at least some outages.
        public var isSignalled: Bool { signalling != .never }

        /// Creates an entry.
        public init(at start: Nanoseconds, _ phase: Timeline.Phase, isSignalled: Bool) {
            self.init(at: start, phase, signalling: isSignalled ? .always : .never)
        }

        /// Creates an entry.
        public init(
            at start: Nanoseconds, _ phase: Timeline.Phase, signalling: Signalling, interface: Interface? = nil,
            location: SourceLocation = SourceLocation(file: "")
        ) {
            self.start = start
            self.phase = phase
            self.signalling = signalling
            self.interface = interface
            self.location = location
        }
    }
}
