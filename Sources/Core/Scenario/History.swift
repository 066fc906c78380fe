public import Determinism
public import LinkModel
internal import Wire

/// The events of a run in order; times count from the scenario's start.
public struct History: Sendable {
    /// An event of a run.
    public enum Event: Sendable {
        /// New conditions of a device's link have taken effect.
        case network(device: String, link: String, isOnline: Bool)
        /// A device's state has changed.
        case device(String, DeviceState)
        /// A device's client has started to open a connection. It may be refused, or end in a timeout.
        case connectionAttempt(Int, device: String)
        /// The attempt has failed, or the connection is closed for the device's client.
        case connectionEnded(Int, device: String)
        /// A device or writer has sent a request: the complete request has entered its link. `connection` is that of
        /// its ``connectionAttempt(_:device:)``, if known.
        case request(
            Int, actor: String, method: String, row: String?, key: String?, bodyDigest: UInt64, connection: Int? = nil)
        /// The note that an earlier request concerns has been given its name in the scenario.
        case named(Int, row: String)
        /// The last byte of a request with a body has entered its link: the number of bytes of the body, without the
        /// framing of chunks.
        case requestSent(Int, bytes: Int)
        /// The request has reached the server.
        case arrived(Int)
        /// The server has responded: the number of bytes of the response's body, without the framing of chunks, and the
        /// number of the revision that its entity tag names, if it does.
        case serverResponded(Int, status: Int, bytes: Int = 0, revision: Int? = nil)
        /// The client has received the response.
        case responseReceived(Int, status: Int)
        /// The exchange has ended without a response for the client.
        case failed(Int)
        /// A fault has been applied to an exchange; `nil` for the point of the fault itself.
        case fault(index: Int, exchange: Int, point: Scenario.Fault.Point? = nil)
        /// A device's store has committed a change; a digest of it.
        case commit(device: String, digest: UInt64)
        /// A device has accepted a user's change: it is stored, and visible on the device.
        case accepted(device: String, row: String)
        /// A device's belief about its connectivity has changed.
        case belief(device: String, Belief)
        /// A device's client has started.
        case started(device: String)
        /// A device's client has stopped.
        case stopped(device: String)
        /// A phase of the run has begun.
        case phase(ScenarioDirector.Phase)
        /// The action of a step has started.
        case step(Int)
        /// A mark has been set: the action of its step has taken effect.
        case mark(String)
        /// A step was not performed, for this reason.
        case missed(step: Int, Reason)
        /// The action of a step is an error, for this reason; with the step's location in the scenario's file.
        case stepFailed(Int, Reason, at: SourceLocation)
        /// A step or a change of a link was ordered at the event's time, this span later than planned.
        case late(Nanoseconds)
        /// A device or a writer has started an action.
        case action(actor: String, Scenario.Action)
        /// What else happens to a device, a writer or the runner.
        case notice(actor: String, Notice)
        /// The notes on the server at the end.
        case server([ServerRow])
        /// A host pause of this length has ended.
        case hostPause(Nanoseconds)
        /// The run was aborted, for this reason.
        case aborted(Reason)
        /// What an earlier request says.
        case contents(Int, RequestContents)
        /// What the response to an earlier write says about its effect.
        case writeResult(Int, WriteResult)
        /// The policy that a device's client publishes.
        case policy(device: String, ClientPolicy)
        /// A device's client has been told of its interface.
        case interface(device: String, isUp: Bool, isMetered: Bool)
        /// What the world of the run records.
        case world(WorldFacts)
        /// The link of a device without faults has delivered a byte that differs from the one sent: the direction, and
        /// the number of bytes of the connection before it.
        case bytesChanged(device: String, Direction, offset: Int)
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

    /// The time of the last event.
    private var end: Nanoseconds?

    /// Appends an event, not earlier than the last one.
    public mutating func append(_ event: Event, at time: Nanoseconds) {
        let time = max(time, end ?? time)
        end = time
        entries.append(Entry(time: time, event: event))
    }

    /// The visible and stored state of a device.
    public struct DeviceState: Hashable, Sendable {
        /// A note as it is shown. A reference, because most notes of a state are those of the state before.
        public struct Row: Hashable, Sendable {
            private final class Values: Sendable {
                let name: String
                let title: String?
                let text: String?
                let icon: Icon
                let isDeleted: Bool
                let kept: [String]
                let opacity: String?
                let isStruck: Bool?
                let error: String?
                let hasMarker: Bool?

                init(
                    name: String, title: String?, text: String?, icon: Icon, isDeleted: Bool, kept: [String],
                    opacity: String?, isStruck: Bool?, error: String?, hasMarker: Bool?
                ) {
                    self.name = name
                    self.title = title
                    self.text = text
                    self.icon = icon
                    self.isDeleted = isDeleted
                    self.kept = kept
                    self.opacity = opacity
                    self.isStruck = isStruck
                    self.error = error
                    self.hasMarker = hasMarker
                }
            }

            private let values: Values

            /// The note's name in the scenario.
            public var name: String { values.name }
            /// The title.
            public var title: String? { values.title }
            /// The text.
            public var text: String? { values.text }
            /// The identity of the values, as long as the history exists: most notes of a state are those of the state before.
            var identity: ObjectIdentifier { ObjectIdentifier(values) }
            /// The icon beside the note.
            public var icon: Icon { values.icon }
            /// Whether a deletion is pending.
            public var isDeleted: Bool { values.isDeleted }
            /// Every text stored for the note.
            public var kept: [String] { values.kept }
            /// The opacity, from 0 to 1, as in scenario files; `nil` if the client does not publish it.
            public var opacity: String? { values.opacity }
            /// Whether the note is struck through; `nil` if the client does not publish it.
            public var isStruck: Bool? { values.isStruck }
            /// The message at the note; `none` for no message, `nil` if the client does not publish it.
            public var error: String? { values.error }
            /// Whether the note, or one that it contains, has an error; `nil` if the client does not publish it.
            public var hasMarker: Bool? { values.hasMarker }

            /// Creates a row.
            public init(
                name: String, title: String?, text: String?, icon: Icon, isDeleted: Bool, kept: [String],
                opacity: String? = nil, isStruck: Bool? = nil, error: String? = nil, hasMarker: Bool? = nil
            ) {
                values = Values(
                    name: name, title: title, text: text, icon: icon, isDeleted: isDeleted, kept: kept,
                    opacity: opacity, isStruck: isStruck, error: error, hasMarker: hasMarker)
            }

            /// Compares texts by their bytes, like the digests of runs.
            public static func == (left: Row, right: Row) -> Bool {
                let (one, other) = (left.values, right.values)
                if one === other { return true }
                func isSame(_ text: String?, _ other: String?) -> Bool {
                    guard let text, let other else { return text == nil && other == nil }
                    return text.hasSameBytes(as: other)
                }
                return one.icon == other.icon && one.isDeleted == other.isDeleted && one.isStruck == other.isStruck
                    && one.hasMarker == other.hasMarker && one.kept.count == other.kept.count
                    && isSame(one.name, other.name) && isSame(one.title, other.title) && isSame(one.text, other.text)
                    && isSame(one.opacity, other.opacity) && isSame(one.error, other.error)
                    && zip(one.kept, other.kept).allSatisfy { isSame($0, $1) }
            }

            public func hash(into hasher: inout Hasher) { Array(name.utf8).hash(into: &hasher) }
        }

        /// The notes.
        public let rows: [Row]
        /// The number of pending changes.
        public let outbox: Int
        /// What is shown beside the notes.
        public let screen: ScreenState

        /// Creates a state.
        public init(rows: [Row], outbox: Int, screen: ScreenState = ScreenState()) {
            self.rows = rows
            self.outbox = outbox
            self.screen = screen
        }

        /// Returns whether the state satisfies a condition.
        public func satisfies(_ condition: StateCondition) -> Bool {
            ExpectationEvaluator.mismatch(self, condition) == nil
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
    public func time(of mark: String) -> Nanoseconds? { index(of: mark).map { entries[$0].time } }

    /// Returns the index of the entry that set a mark.
    func index(of mark: String) -> Int? {
        entries.firstIndex {
            if case .mark(mark) = $0.event { return true }
            return false
        }
    }

    /// Returns the index of the entry with which a step's action started.
    func index(ofStep step: Int) -> Int? {
        entries.firstIndex {
            if case .step(step) = $0.event { return true }
            return false
        }
    }

    /// The index of the entry with which the restore phase began; the end of the entries if it was not recorded.
    var restoreIndex: Int {
        entries.firstIndex {
            if case .phase(.restore) = $0.event { return true }
            return false
        } ?? entries.count
    }

    /// Whether the run was aborted.
    var wasAborted: Bool {
        entries.contains { if case .aborted = $0.event { true } else { false } }
    }

    /// An exchange assembled from its events. A reference, because invariants select and sort the exchanges of a run many
    /// times; nothing changes after ``exchanges(isPortal:)``.
    final class Exchange {
        /// The number in the run.
        let id: Int
        let actor: String
        let method: String
        var row: String?
        let key: String?
        let bodyDigest: UInt64
        /// What the request says; `nil` if the world does not record it.
        var contents: RequestContents?
        /// What the response says about the effect of a write; `nil` if the world does not record it.
        var result: WriteResult?
        let sentAt: Nanoseconds
        /// The index of the request's entry.
        let sentIndex: Int
        /// The index of the entry of the connection attempt whose first request it is; `nil` if it is not the first.
        let dialIndex: Int?
        /// Whether the request is the first of a recorded connection attempt.
        var isFirstOfAttempt: Bool { dialIndex != nil }
        /// Whether a captive portal responds instead of the server.
        let isOnPortal: Bool
        var arrivedAt: Nanoseconds?
        var arrivedIndex = 0
        var serverStatus: Int?
        /// The index of the entry of the server's response; `nil` if there is none.
        var respondedIndex: Int?
        var receivedStatus: Int?
        /// The time and the index of the entry with which the exchange ended for the client; `nil` if it did not.
        var end: (index: Int, time: Nanoseconds)?
        /// The number of bytes of the request's body.
        var bytesUp = 0
        /// The number of bytes of the body of the server's response.
        var bytesDown = 0
        /// The number of the revision that the response names.
        var revision: Int?
        /// The number of the connection; `nil` if it is not known.
        let connection: Int?
        /// The time at which the client closed the connection; `nil` if it did not.
        var disconnectedAt: Nanoseconds?
        /// The time at which the fault applies.
        var faultAt: Nanoseconds?
        /// The fault that applies, and its point; `nil` for the point of the fault itself.
        var fault: (index: Int, point: Scenario.Fault.Point?)?

        fileprivate init(
            id: Int, actor: String, method: String, row: String?, key: String?, bodyDigest: UInt64, sentAt: Nanoseconds,
            sentIndex: Int, dialIndex: Int?, isOnPortal: Bool, connection: Int?
        ) {
            self.id = id
            self.actor = actor
            self.method = method
            self.row = row
            self.key = key
            self.bodyDigest = bodyDigest
            self.sentAt = sentAt
            self.sentIndex = sentIndex
            self.dialIndex = dialIndex
            self.isOnPortal = isOnPortal
            self.connection = connection
        }
    }

    /// Returns the exchanges in the order of their requests.
    ///
    /// - Parameter isPortal: Returns whether a link of a device, given by its name, has a captive portal.
    func exchanges(isPortal: (_ device: String, _ link: String) -> Bool = { _, _ in false }) -> [Exchange] {
        var found: [Exchange] = []
        var positions: [Int: Int] = [:]
        func change(_ id: Int, _ body: (Exchange) -> Void) {
            if let position = positions[id] { body(found[position]) }
        }
        var attempts: [Int: Int] = [:]
        var portals: Set<String> = []
        var ends: [Int: Nanoseconds] = [:]
        for (index, entry) in entries.enumerated() {
            switch entry.event {
            case .network(let device, let link, _):
                if isPortal(device, link) { portals.insert(device) } else { portals.remove(device) }
            case .connectionAttempt(let connection, _): attempts[connection] = index
            case .request(let id, let actor, let method, let row, let key, let digest, let connection):
                let dialIndex = connection.flatMap { attempts.removeValue(forKey: $0) }
                let exchange = Exchange(
                    id: id, actor: actor, method: method, row: row, key: key, bodyDigest: digest, sentAt: entry.time,
                    sentIndex: index, dialIndex: dialIndex,
                    isOnPortal: portals.contains(actor), connection: connection)
                positions[id] = found.count
                found.append(exchange)
            case .named(let id, let row): change(id) { $0.row = row }
            case .contents(let id, let contents): change(id) { $0.contents = contents }
            case .writeResult(let id, let result): change(id) { $0.result = result }
            case .requestSent(let id, let bytes): change(id) { $0.bytesUp = bytes }
            case .fault(let index, let id, let point):
                change(id) { exchange in
                    exchange.fault = (index, point)
                    exchange.faultAt = entry.time
                }
            case .connectionEnded(let connection, _): ends[connection] = entry.time
            case .arrived(let id):
                change(id) { ($0.arrivedAt, $0.arrivedIndex) = (entry.time, index) }
            case .serverResponded(let id, let status, let bytes, let revision):
                change(id) { exchange in
                    exchange.serverStatus = status
                    exchange.respondedIndex = index
                    exchange.bytesDown = bytes
                    exchange.revision = revision
                    // A response implies an arrived request, even if no arrival was recorded.
                    if exchange.arrivedAt == nil {
                        (exchange.arrivedAt, exchange.arrivedIndex) = (entry.time, index)
                    }
                }
            case .responseReceived(let id, let status):
                change(id) { exchange in
                    exchange.receivedStatus = status
                    exchange.end = (index, entry.time)
                }
            case .failed(let id): change(id) { $0.end = (index, entry.time) }
            default: break
            }
        }
        for exchange in found {
            if let connection = exchange.connection { exchange.disconnectedAt = ends[connection] }
        }
        return found
    }
}
