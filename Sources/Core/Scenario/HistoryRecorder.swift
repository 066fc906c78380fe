public import Determinism

/// The recorder of a run: a history, the names of notes, and the numbers of exchanges and
/// connections. A value without a clock.
///
/// Recording begins with the event ``History/Event/phase(_:)`` of the phase ``ScenarioDirector/Phase/script``, whose
/// time is 0 s, and ends with that of ``ScenarioDirector/Phase/ended``; other events are ignored.
public struct HistoryRecorder: Sendable {
    /// The events so far.
    public private(set) var history = History()
    /// The time of 0 s; `nil` before the script phase.
    public private(set) var start: Instant?

    private var hasEnded = false
    /// The names of records, and the records of each name, the latest last.
    private var rows: [RecordBytes: String] = [:]
    private var records: [String: [[UInt8]]] = [:]
    private var exchanges: [Source: Int] = [:]
    private var connections: [Source: Int] = [:]
    /// Exchanges of records without a name, in order.
    private var unnamed: [(exchange: Int, record: [UInt8])] = []
    private var states: [String: History.DeviceState] = [:]
    /// The revisions of responses that have begun, by their exchanges.
    private var revisions: [Int: Int] = [:]
    /// The numbers of access tokens.
    private var tokens: [RecordBytes: Int] = [:]
    /// The actors and records of exchanges without a complete response.
    private var subjects: [Int: Subject] = [:]
    /// The entity tags of the last responses.
    private var entityTags: [Subject: String] = [:]
    /// The number of names assigned; names of notes are the same as long as it is.
    public private(set) var namings = 0

    /// The maximum number of exchanges that are remembered until their record gets a name; the oldest are dropped.
    private static let unnamedMax = 1024

    /// A number given by an actor.
    private struct Source: Hashable {
        let actor: String
        let number: Int
    }

    /// A record as an actor sees it.
    private struct Subject: Hashable {
        let actor: String
        let record: RecordBytes
    }

    /// Bytes as a key, whose hash takes them in one piece.
    private struct RecordBytes: Hashable {
        let bytes: [UInt8]

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
    }

    /// Creates a recorder.
    public init() {}

    // MARK: Events

    /// Records an event and returns whether it belongs to the run.
    @discardableResult
    public mutating func record(_ event: History.Event, at now: Instant) -> Bool {
        if case .phase(.script) = event, start == nil { start = now }
        guard let start, !hasEnded else { return false }
        history.append(event, at: now - start)
        if case .phase(.ended) = event { hasEnded = true }
        return true
    }

    /// Returns the event of a device's view; `nil` if the view has not changed. The caller records it.
    public mutating func view(
        _ rows: [Row], outbox: Int, screen: History.ScreenState = History.ScreenState(), of device: String
    ) -> History.Event? {
        view(History.DeviceState(rows: rows.map { state(of: $0) }, outbox: outbox, screen: screen), of: device)
    }

    /// Returns a note of a device's view with its name.
    public func state(of row: Row) -> History.DeviceState.Row {
        History.DeviceState.Row(
            name: name(of: row.record), title: row.title, text: row.text, icon: row.icon, isDeleted: row.isDeleted,
            kept: row.kept, opacity: row.opacity, isStruck: row.isStruck, error: row.error, hasMarker: row.hasMarker)
    }

    /// Returns whether the name of a record for output is `name`.
    public func hasName(_ name: String, _ record: [UInt8]) -> Bool { self.name(of: record) == name }

    /// Returns the event of a device's state; `nil` if the state has not changed. The caller records it.
    public mutating func view(_ state: History.DeviceState, of device: String) -> History.Event? {
        guard states[device] != state else { return nil }
        states[device] = state
        return .device(device, state)
    }

    /// Returns the event of the last state of a device whose app is closed, with another field: its screen has no controls, no
    /// dialog and no message any more. `nil` if there is no state, or it has the field. The caller records it.
    public mutating func closedView(adding field: String, of device: String) -> History.Event? {
        guard let state = states[device] else { return nil }
        let (screen, fields) = (state.screen, state.screen.fields ?? [])
        if fields.contains(where: { $0.utf8.elementsEqual(field.utf8) }) { return nil }
        let changed = History.ScreenState(
            name: screen.name, controls: screen.controls.map { _ in [] }, dialog: screen.dialog.map { _ in "none" },
            toast: screen.toast.map { _ in "none" }, error: screen.error, hasMarker: screen.hasMarker,
            fields: fields + [field])
        return view(History.DeviceState(rows: state.rows, outbox: state.outbox, screen: changed), of: device)
    }

    /// A note of a device's view.
    public struct Row: Sendable {
        /// The record's identifier.
        public var record: [UInt8]
        /// The title.
        public var title: String?
        /// The text.
        public var text: String?
        /// The icon beside the note.
        public var icon: History.Icon
        /// Whether a deletion is pending.
        public var isDeleted: Bool
        /// Every text stored for the note.
        public var kept: [String]
        /// The opacity, from 0 to 1, as in scenario files; `nil` if the client does not publish it.
        public var opacity: String?
        /// Whether the note is struck through; `nil` if the client does not publish it.
        public var isStruck: Bool?
        /// The message at the note; `none` for no message, `nil` if the client does not publish it.
        public var error: String?
        /// Whether the note, or one that it contains, has an error; `nil` if the client does not publish it.
        public var hasMarker: Bool?

        /// Creates a row.
        public init(
            record: [UInt8], title: String?, text: String?, icon: History.Icon, isDeleted: Bool = false,
            kept: [String] = [],
            opacity: String? = nil, isStruck: Bool? = nil, error: String? = nil, hasMarker: Bool? = nil
        ) {
            self.error = error
            self.hasMarker = hasMarker
            self.record = record
            self.title = title
            self.text = text
            self.icon = icon
            self.isDeleted = isDeleted
            self.kept = kept
            self.opacity = opacity
            self.isStruck = isStruck
        }
    }

    // MARK: Names

    /// Assigns a record its name in the scenario. Returns the events that name earlier requests of the record, for
    /// the caller to record.
    public mutating func assign(row: String, to record: [UInt8]) -> [History.Event] {
        rows[RecordBytes(record)] = row
        records[row, default: []].removeAll { $0 == record }
        records[row, default: []].append(record)
        namings += 1
        let named = unnamed.filter { $0.record == record }
        unnamed.removeAll { $0.record == record }
        return named.map { .named($0.exchange, row: row) }
    }

    /// Returns the record that has a name in the scenario; of several the last one assigned.
    public func record(of row: String) -> [UInt8]? { records[row]?.last }

    /// Returns the records that have or had a name in the scenario, the latest last: a note that is restored under
    /// another identifier keeps its name.
    public func records(of row: String) -> [[UInt8]] { records[row] ?? [] }

    /// Returns the name of a record in the scenario; `nil` if it has none.
    public func row(of record: [UInt8]) -> String? { rows[RecordBytes(record)] }

    /// The maximum number of bytes of an identifier that stands for a name.
    private static let nameBytesMax = 32

    /// Returns the name of a record for output: in the scenario, or its identifier, of a UUID the first group.
    public func name(of record: [UInt8]) -> String {
        if let row = rows[RecordBytes(record)] { return row }
        let isUUID = record.count > 8 && record[8] == UInt8(ascii: "-")
        return String(decoding: record.prefix(isUUID ? 8 : Self.nameBytesMax), as: UTF8.self)
    }

    // MARK: Numbers

    /// Returns the number in the run of an actor's exchange; numbers count from 0 in the order of the calls.
    public mutating func exchange(_ number: Int, of actor: String) -> Int {
        Self.number(Source(actor: actor, number: number), in: &exchanges)
    }

    /// Returns the number in the run of a device's connection; numbers count from 0 in the order of the calls.
    public mutating func connection(_ number: Int, of device: String) -> Int {
        Self.number(Source(actor: device, number: number), in: &connections)
    }

    private static func number(_ source: Source, in known: inout [Source: Int]) -> Int {
        if let number = known[source] { return number }
        let number = known.count
        known[source] = number
        return number
    }

    /// Returns the number in the run of an access token; numbers count from 0 in the order of the calls.
    public mutating func token(_ token: [UInt8]) -> Int {
        if let number = tokens[RecordBytes(token)] { return number }
        guard tokens.count < Self.tokensMax else { return Self.tokensMax }
        let number = tokens.count
        tokens[RecordBytes(token)] = number
        return number
    }

    /// The maximum number of access tokens that are told apart.
    private static let tokensMax = 4096

    /// Remembers the entity tag of a response that has begun.
    ///
    /// - Parameter exchange: The number of the exchange in the run.
    public mutating func responseStarted(_ exchange: Int, entityTag: String?) {
        revisions[exchange] = entityTag.flatMap(Self.revision)
        if let entityTag, let subject = subjects[exchange] { entityTags[subject] = entityTag }
    }

    /// Returns the revision that the entity tag of the last response to an actor names: its text between the quotes;
    /// `nil` if no response did.
    public func revision(of row: String, receivedBy actor: String) -> String? {
        guard let record = record(of: row), let tag = entityTags[Subject(actor: actor, record: RecordBytes(record))]
        else {
            return nil
        }
        let parts = tag.split(separator: "\"", omittingEmptySubsequences: false)
        return parts.count == 3 ? String(parts[1]) : nil
    }

    /// Returns the event of a complete response of the server.
    ///
    /// - Parameter exchange: The number of the exchange in the run.
    public mutating func responded(_ exchange: Int, status: Int, bytes: Int64) -> History.Event {
        subjects[exchange] = nil
        return .serverResponded(
            exchange, status: status, bytes: Int(clamping: bytes), revision: revisions.removeValue(forKey: exchange))
    }

    /// Returns the number of the revision that the entity tag of a note names, such as 12 of `"12-0f3a"`; `nil` if it
    /// names none.
    static func revision(_ entityTag: String) -> Int? {
        let bytes = entityTag.utf8.drop { $0 != UInt8(ascii: "\"") }.dropFirst()
        let digits = bytes.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard bytes.dropFirst(digits.count).first == UInt8(ascii: "-") else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }

    /// Returns the event of a request. If its record has no name yet, a later ``assign(row:to:)`` names the request.
    public mutating func request(
        _ number: Int, of actor: String, method: String, record: [UInt8]?, key: String?, bodyDigest: UInt64,
        connection: Int? = nil
    ) -> History.Event {
        let id = exchange(number, of: actor)
        let row = record.flatMap { rows[RecordBytes($0)] }
        if let record { subjects[id] = Subject(actor: actor, record: RecordBytes(record)) }
        if let record, row == nil {
            if unnamed.count == Self.unnamedMax { unnamed.removeFirst() }
            unnamed.append((id, record))
        }
        return .request(
            id, actor: actor, method: method, row: row, key: key, bodyDigest: bodyDigest,
            connection: connection.map { self.connection($0, of: actor) })
    }
}
