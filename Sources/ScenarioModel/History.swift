public import LinkModel

/// What happened in a run, in order; times count from the scenario's start.
public struct History: Sendable {
    /// Something that happened.
    public enum Event: Sendable {
        /// A link does something else from now on.
        case network(device: String, link: String, isOnline: Bool)
        /// A device looks different.
        case device(String, DeviceState)
        /// Somebody has sent a request: read whole where their link begins.
        case request(Int, actor: String, method: String, row: String?, key: String?, bodyDigest: UInt64)
        /// It has reached the server.
        case arrived(Int)
        /// The server has answered.
        case served(Int, status: Int)
        /// The answer has reached whoever asked.
        case answered(Int, status: Int)
        /// There will be no answer.
        case lost(Int)
        /// A fault has been done to an exchange.
        case fault(index: Int, exchange: Int)
        /// A mark is set.
        case mark(String)
        /// Somebody does something.
        case act(actor: String, String)
        /// What the server has at the end.
        case server([ServerRow])
        /// The machine has done nothing for so long, until now; of a live run.
        case stall(Nanoseconds)
        /// The run is over before its end, and why.
        case gaveUp(String)
    }

    /// An event with its time.
    public struct Entry: Sendable {
        /// When.
        public let time: Nanoseconds
        /// What.
        public let event: Event
    }

    /// What happened, in order.
    public private(set) var entries: [Entry] = []

    /// Nothing has happened.
    public init() {}

    /// Something happens; never earlier than what has happened before.
    public mutating func append(_ event: Event, at time: Nanoseconds) {
        entries.append(Entry(time: max(time, entries.last?.time ?? time), event: event))
    }

    /// What a device shows and keeps.
    public struct DeviceState: Hashable, Sendable {
        /// A note as it is shown.
        public struct Row: Hashable, Sendable {
            /// What the scenario calls it.
            public let name: String
            /// Its title.
            public let title: String?
            /// Its text.
            public let text: String?
            /// The mark beside it: none, upload, conflict, error.
            public let icon: String
            /// Whether it waits to be deleted.
            public let isDeleted: Bool
            /// Every text that is held for it.
            public let kept: [String]

            /// Creates a row.
            public init(name: String, title: String?, text: String?, icon: String, isDeleted: Bool, kept: [String]) {
                self.name = name
                self.title = title
                self.text = text
                self.icon = icon
                self.isDeleted = isDeleted
                self.kept = kept
            }
        }

        /// The notes.
        public let rows: [Row]
        /// Changes that wait.
        public let outbox: Int

        /// Creates a state.
        public init(rows: [Row], outbox: Int) {
            self.rows = rows
            self.outbox = outbox
        }
    }

    /// A note at the server.
    public struct ServerRow: Hashable, Sendable {
        /// Whose.
        public let user: String
        /// What the scenario calls it.
        public let name: String
        /// How often it has been written.
        public let revision: Int
        /// Its title.
        public let title: String?
        /// Its text.
        public let text: String?

        /// Creates a row.
        public init(user: String, name: String, revision: Int, title: String?, text: String?) {
            self.user = user
            self.name = name
            self.revision = revision
            self.title = title
            self.text = text
        }
    }

    // MARK: What can be asked

    /// When a mark was set.
    public func time(of mark: String) -> Nanoseconds? {
        entries.first {
            if case .mark(mark) = $0.event { return true }
            return false
        }?.time
    }

    /// The longest time for which the machine stood still.
    var longestStall: Nanoseconds {
        entries.reduce(.zero) { longest, entry in
            if case .stall(let span) = entry.event { max(longest, span) } else { longest }
        }
    }

    /// Whether it was over before its end.
    var gaveUp: Bool {
        entries.contains { if case .gaveUp = $0.event { true } else { false } }
    }

    func time(of reference: TimeReference) -> Nanoseconds? {
        switch reference {
        case .time(let time): time
        case .mark(let name): time(of: name)
        }
    }

    /// The states of a device with when each began.
    func states(of device: String) -> [(time: Nanoseconds, state: DeviceState)] {
        entries.compactMap { entry in
            if case .device(device, let state) = entry.event { return (entry.time, state) }
            return nil
        }
    }

    /// An exchange, put together.
    struct Exchange {
        let actor: String
        let method: String
        let row: String?
        let key: String?
        let bodyDigest: UInt64
        let sentAt: Nanoseconds
        var arrivedAt: Nanoseconds?
        var served: Int?
        var answered: Int?
    }

    func exchanges() -> [Exchange] {
        var order: [Int] = []
        var found: [Int: Exchange] = [:]
        for entry in entries {
            switch entry.event {
            case .request(let id, let actor, let method, let row, let key, let digest):
                order.append(id)
                found[id] = Exchange(
                    actor: actor, method: method, row: row, key: key, bodyDigest: digest, sentAt: entry.time)
            case .arrived(let id): found[id]?.arrivedAt = entry.time
            case .served(let id, let status):
                found[id]?.served = status
                // An answer needs a request that has arrived, even if nobody noted it.
                if found[id]?.arrivedAt == nil { found[id]?.arrivedAt = entry.time }
            case .answered(let id, let status): found[id]?.answered = status
            default: break
            }
        }
        return order.compactMap { found[$0] }
    }
}
