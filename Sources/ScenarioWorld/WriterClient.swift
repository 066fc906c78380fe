internal import Determinism
internal import NotesContract
public import ScenarioModel
public import SyncEngine

/// The requests of a writer: a client that reaches the server directly. It reads a note before it changes it.
///
/// A state machine without clock and sockets: ``begin(_:_:date:)``, then each request of ``takeRequest()`` is answered
/// by ``received(_:)`` before the next is taken.
public struct WriterClient: Sendable {
    /// A request to be sent.
    public struct Request: Sendable {
        /// The number of the writer's earlier requests.
        public let number: Int
        /// Method, target, header fields and body, without `Host` and `Authorization`.
        public let content: SyncRequestContent
        /// The note that the request concerns.
        public let record: [UInt8]?
        /// The key of the operation (`Idempotency-Key`).
        public let key: String?
        /// A digest of the body.
        public let bodyDigest: UInt64
    }

    private let ids: RandomIdentifiers
    private let resource = NotesResource()
    private var count = 0
    /// The change that follows the read.
    private var change: Scenario.Action?
    private var date = ""
    /// The request to be sent next, or whose response is awaited.
    private var operation: SyncOperation?

    /// Creates the client of a writer; name and seed determine its identifiers.
    public init(_ name: String, seed: UInt64) { ids = RandomIdentifiers(seed: seed, "user/\(name)/ids") }

    /// Begins an action. Returns the record that the action creates, which has its name from now on.
    ///
    /// - Parameter date: The date of the change in the contract's format.
    public mutating func begin(
        _ action: Scenario.Action, _ recorder: HistoryRecorder, date: String
    ) throws(ActionError) -> RecordID? {
        self.date = date
        change = nil
        operation = nil
        switch action {
        case .create(_, let title, let text):
            let id = RecordID(ids.uuid())
            operation = .create(id, content(title, text, over: nil), operation: ids.uuid())
            return id
        case .edit(let row, _, _), .delete(let row):
            change = action
            operation = .fetch(try UserChange.record(row, recorder))
        case .sync: break
        case .resolve: throw ActionError("a writer has no conflicts to resolve")
        case .kill, .start: throw ActionError("a writer has no client to stop or start")
        }
        return nil
    }

    private func content(_ title: String?, _ text: String?, over current: RecordContent?) -> RecordContent {
        let current = current.map { NoteContent($0) }
        return NoteContent(title: title ?? current?.title, text: text ?? current?.text, date: date).encoded
    }

    /// Returns the next request; `nil` if the action is complete.
    public mutating func takeRequest() -> Request? {
        guard let operation else { return nil }
        let content = resource.request(for: operation)
        defer { count += 1 }
        return Request(
            number: count, content: content, record: Self.record(of: operation),
            key: content.headers.first { $0.name == NotesHTTP.idempotencyKeyName }?.value,
            bodyDigest: FNV1a.digest(content.body))
    }

    /// Processes the response to the last request.
    public mutating func received(_ response: SyncResponse) throws(ActionError) {
        guard let operation else { return }
        self.operation = nil
        guard let change else {
            guard (200...299).contains(response.status) else {
                throw ActionError("the server responds \(response.status)")
            }
            return
        }
        self.change = nil
        guard case .record(let remote) = resource.reply(to: operation, response).result else {
            throw ActionError("the server responds \(response.status) to a read of the note")
        }
        switch change {
        case .edit(_, let title, let text):
            self.operation = .update(
                remote.id, content(title, text, over: remote.content), base: remote.revision, operation: ids.uuid())
        case .delete: self.operation = .delete(remote.id, base: remote.revision, operation: ids.uuid())
        case .create, .resolve, .sync, .kill, .start: break
        }
    }

    private static func record(of operation: SyncOperation) -> [UInt8]? {
        switch operation {
        case .fetch(let id), .create(let id, _, _), .update(let id, _, _, _), .delete(let id, _, _): Array(id.text.utf8)
        case .probe, .index: nil
        }
    }
}
