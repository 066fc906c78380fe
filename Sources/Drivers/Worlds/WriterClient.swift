public import Client
internal import Determinism
internal import NotesContract
public import Scenario

/// The requests of a writer: a client that reaches the server directly. It reads a note before it changes it, unless
/// the change is stale.
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

    private let name: String
    private let ids: RandomIdentifiers
    private let resource = NotesResource()
    private var count = 0
    /// The change that follows the read.
    private var change: Scenario.Action?
    private var date = ""
    /// A request whose response is awaited, or that is to be sent next.
    private enum Pending {
        /// The read before a change.
        case read(SyncOperation)
        /// A change that must succeed.
        case change(SyncOperation)
        /// A change on an old base; every response is a result.
        case stale(SyncOperation)
        /// A request as given; every response is a result.
        case raw(SyncRequestContent, record: [UInt8]?)
    }

    private var pending: Pending?
    /// Each note as it was read last.
    private var lastRead: [String: RemoteRecord] = [:]

    /// Creates the client of a writer; name and seed determine its identifiers.
    public init(_ name: String, seed: UInt64) {
        self.name = name
        ids = RandomIdentifiers(seed: seed, "user/\(name)/ids")
    }

    /// Begins an action. Returns the record that the action creates, which has its name from now on.
    ///
    /// - Parameter date: The date of the change in the contract's format.
    public mutating func begin(
        _ action: Scenario.Action, _ recorder: HistoryRecorder, date: String
    ) throws(ActionError) -> RecordID? {
        self.date = date
        change = nil
        pending = nil
        switch action {
        case .create(_, let title, let text):
            let id = RecordID(ids.uuid())
            pending = .change(.create(id, content(title, text, over: nil), operation: ids.uuid()))
            return id
        case .edit(let row, _, _), .delete(let row):
            change = action
            pending = .read(.fetch(try UserChange.record(row, recorder)))
        case .editStale(let row, let title, let text):
            let base = try base(of: row)
            pending = .stale(
                .update(base.id, content(title, text, over: base.content), base: base.revision, operation: ids.uuid()))
        case .deleteStale(let row):
            let base = try base(of: row)
            pending = .stale(.delete(base.id, base: base.revision, operation: ids.uuid()))
        case .send(let request):
            let record = (request.rows.first ?? request.bodyRows.first).flatMap { recorder.record(of: $0) }
            pending = .raw(try RawRequest.content(of: request, recorder, from: name), record: record)
        case .sync: break
        case .resolve, .choose: throw ActionError("a writer has no conflicts to resolve")
        case .kill, .start: throw ActionError("a writer has no client to stop or start")
        case .keep, .pin, .open, .upgrade, .clock, .call, .signOut, .signIn, .disk, .server:
            throw ActionError("the action is not supported by writers")
        }
        return nil
    }

    private func content(_ title: String?, _ text: String?, over current: RecordContent?) -> RecordContent {
        let current = current.map { NoteContent($0) }
        return NoteContent(title: title ?? current?.title, text: text ?? current?.text, date: date).encoded
    }

    /// Returns a note as the writer read it last.
    private func base(of row: String) throws(ActionError) -> RemoteRecord {
        guard let base = lastRead[row] else { throw ActionError("the writer has not read \(row) before") }
        return base
    }

    /// Returns the next request; `nil` if the action is complete.
    public mutating func takeRequest() -> Request? {
        guard let pending else { return nil }
        let content: SyncRequestContent
        let record: [UInt8]?
        switch pending {
        case .read(let operation), .change(let operation), .stale(let operation):
            (content, record) = (resource.request(for: operation), Self.record(of: operation))
        case .raw(let request, let named): (content, record) = (request, named)
        }
        defer { count += 1 }
        let key = NotesHTTP.idempotencyKeyName.lowercased()
        return Request(
            number: count, content: content, record: record,
            key: content.headers.first { $0.name.lowercased() == key }?.value, bodyDigest: FNV1a.digest(content.body))
    }

    /// Processes the response to the last request.
    public mutating func received(_ response: SyncResponse) throws(ActionError) {
        guard let pending = self.pending.take() else { return }
        switch pending {
        case .read(let operation):
            guard case .record(let remote) = resource.reply(to: operation, response).result else {
                throw ActionError("the server responded with status \(response.status) to a read of the note")
            }
            change(remote)
        case .change:
            guard (200...299).contains(response.status) else {
                throw ActionError("the server responded with status \(response.status)")
            }
        case .stale, .raw: break
        }
    }

    /// Makes the change that follows the read.
    private mutating func change(_ remote: RemoteRecord) {
        switch change.take() {
        case .edit(let row, let title, let text)?:
            lastRead[row] = remote
            pending = .change(
                .update(
                    remote.id, content(title, text, over: remote.content), base: remote.revision, operation: ids.uuid())
            )
        case .delete(let row)?:
            lastRead[row] = remote
            pending = .change(.delete(remote.id, base: remote.revision, operation: ids.uuid()))
        default: break
        }
    }

    private static func record(of operation: SyncOperation) -> [UInt8]? {
        switch operation {
        case .fetch(let id), .create(let id, _, _), .update(let id, _, _, _), .delete(let id, _, _): Array(id.text.utf8)
        case .probe, .refresh, .index, .contents: nil
        }
    }
}
