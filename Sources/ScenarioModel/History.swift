public import Determinism

/// The events of a run in order; times count from the scenario's start.
public struct History: Sendable {
    /// An event of a run.
    public enum Event: Sendable {
        /// New conditions of a device's link have taken effect.
        case network(device: String, link: String, isOnline: Bool)
        /// A device's state has changed.
        case device(String, DeviceState)
        /// A device or writer has sent a request: the complete request has entered its link.
        case request(Int, actor: String, method: String, row: String?, key: String?, bodyDigest: UInt64)
        /// The request has reached the server.
        case arrived(Int)
        /// The server has responded.
        case serverResponded(Int, status: Int)
        /// The client has received the response.
        case responseReceived(Int, status: Int)
        /// The exchange has ended without a response for the client.
        case failed(Int)
        /// A fault has been applied to an exchange.
        case fault(index: Int, exchange: Int)
        /// A mark has been set.
        case mark(String)
        /// A device, a writer or the runner has started an action.
        case action(actor: String, String)
        /// The notes on the server at the end.
        case server([ServerRow])
        /// A host pause of this length has ended.
        case hostPause(Nanoseconds)
        /// The run was aborted, for this reason.
        case aborted(String)
    }

    /// An event with its time.
    public struct Entry: Sendable {
        /// The time.
        public let time: Nanoseconds
        /// The event.
        public let event: Event
    }

    /// The events in order.
    public private(set) var entries: [Entry] = []

    /// Creates an empty history.
    public init() {}

    /// Appends an event, not earlier than the last one.
    public mutating func append(_ event: Event, at time: Nanoseconds) {
        entries.append(Entry(time: max(time, entries.last?.time ?? time), event: event))
    }

    /// The visible and stored state of a device.
    public struct DeviceState: Hashable, Sendable {
        /// A note as it is shown.
        public struct Row: Hashable, Sendable {
            /// The note's name in the scenario.
            public let name: String
            /// The title.
            public let title: String?
            /// The text.
            public let text: String?
            /// The icon beside the note: none, upload, conflict or error.
            public let icon: String
            /// Whether a deletion is pending.
            public let isDeleted: Bool
            /// Every text stored for the note.
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
        /// The number of pending changes.
        public let outbox: Int

        /// Creates a state.
        public init(rows: [Row], outbox: Int) {
            self.rows = rows
            self.outbox = outbox
        }

        /// Returns whether the state satisfies a condition.
        public func satisfies(_ condition: StateCondition) -> Bool {
            ExpectationEvaluator.mismatch(self, condition).reason == nil
        }
    }

    /// A note on the server.
    public struct ServerRow: Hashable, Sendable {
        /// The owner.
        public let user: String
        /// The note's name in the scenario.
        public let name: String
        /// The number of its revision.
        public let revision: Int
        /// The title.
        public let title: String?
        /// The text.
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

    // MARK: Queries

    /// Returns the time at which a mark was set.
    public func time(of mark: String) -> Nanoseconds? {
        entries.first {
            if case .mark(mark) = $0.event { return true }
            return false
        }?.time
    }

    /// The longest host pause.
    var longestHostPause: Nanoseconds {
        entries.reduce(.zero) { longest, entry in
            if case .hostPause(let duration) = entry.event { max(longest, duration) } else { longest }
        }
    }

    /// Whether the run was aborted.
    var wasAborted: Bool {
        entries.contains { if case .aborted = $0.event { true } else { false } }
    }

    func time(of reference: TimeReference) -> Nanoseconds? {
        switch reference {
        case .time(let time): time
        case .mark(let name): time(of: name)
        }
    }

    /// Returns the states of a device with the time at which each began.
    func states(of device: String) -> [(time: Nanoseconds, state: DeviceState)] {
        entries.compactMap { entry in
            if case .device(device, let state) = entry.event { return (entry.time, state) }
            return nil
        }
    }

    /// An exchange assembled from its events.
    struct Exchange {
        let actor: String
        let method: String
        let row: String?
        let key: String?
        let bodyDigest: UInt64
        let sentAt: Nanoseconds
        var arrivedAt: Nanoseconds?
        var serverStatus: Int?
        var receivedStatus: Int?
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
            case .serverResponded(let id, let status):
                found[id]?.serverStatus = status
                // A response implies an arrived request, even if no arrival was recorded.
                if found[id]?.arrivedAt == nil { found[id]?.arrivedAt = entry.time }
            case .responseReceived(let id, let status): found[id]?.receivedStatus = status
            default: break
            }
        }
        return order.compactMap { found[$0] }
    }
}
