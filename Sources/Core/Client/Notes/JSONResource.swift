internal import Wire

/// The records of a REST server as JSON objects: an identifier, a revision, and other members, which are the content.
///
/// | operation | request |
/// |---|---|
/// | index | `GET path`: an array of objects with identifier, revision and, optionally, `"deleted": true` |
/// | fetch | `GET path/ID` |
/// | create | `POST path` with all members |
/// | update | `PUT path/ID` with all members and the base revision, in the body and in `If-Match` |
/// | delete | `DELETE path/ID` with the base revision in `If-Match` |
///
/// With `listsContents`, the index has whole records, and no record is fetched that it lists.
///
/// The server responds with the object as it is stored, to a stale base with 409 or 412, and to an unknown record with
/// 404 or 410. Every change carries an `Idempotency-Key`.
public struct JSONResource: SyncResource {
    public let name: String
    public let serverDescription: String
    public let ignoredMembers: Set<String>
    public let dateMember: String?
    private let comparedMembers: Set<String>?
    private let indexHasContents: Bool
    private let path: String
    private let identifierKey: String
    private let revisionKey: String
    private let marker: (name: String, value: String)?
    private let refreshPath: String

    /// Creates a resource.
    ///
    /// - Parameters:
    ///   - name: The name stored in the store's file.
    ///   - path: The path of the collection, such as `/items`; a final slash is kept.
    ///   - marker: A header field of every response of the server, by which a captive portal is recognised.
    ///   - identifierKey: The member with the identifier.
    ///   - revisionKey: The member with the revision: a string, or a number that grows.
    ///   - refreshPath: The path of requests for another access token, if the client has tokens.
    ///   - ignoring: Members that the server makes, such as `updatedAt`: versions that differ in them only are equal.
    ///   - comparing: The only members that are compared; `nil` compares all but the ignored ones.
    ///   - dateKey: The member that the app sets to the date of each change, for ``ConflictPolicy/latest``: an integer of
    ///     milliseconds since 1970, or a text of ISO 8601.
    ///   - listsContents: Whether the index has whole records.
    public init(
        name: String, path: String, marker: (name: String, value: String)? = nil, identifierKey: String = "id",
        revisionKey: String = "revision", refreshPath: String = "/tokens/refresh", ignoring: Set<String> = [],
        comparing: Set<String>? = nil, dateKey: String? = nil, listsContents: Bool = false
    ) {
        ignoredMembers = ignoring
        comparedMembers = comparing
        dateMember = dateKey
        indexHasContents = listsContents
        self.name = name
        serverDescription = "server of '\(name)'"
        self.path = path
        self.marker = marker
        self.identifierKey = identifierKey
        self.revisionKey = revisionKey
        self.refreshPath = refreshPath
    }

    /// Returns the content of a JSON object, without the members of identifier and revision; `nil` if the bytes are not
    /// a JSON object.
    public func content(json: some Sequence<UInt8>) -> RecordContent? {
        JSONText.parse(json)?.object.map(content)
    }

    private func content(_ object: JSONObject) -> RecordContent {
        var object = object
        object[identifierKey] = nil
        object[revisionKey] = nil
        return RecordContent(Array(JSONValue.object(object).json.utf8))
    }

    public func areEqual(_ left: RecordContent, _ right: RecordContent) -> Bool {
        if left == right { return true }
        guard !ignoredMembers.isEmpty || comparedMembers != nil, let left = JSONText.parse(left.bytes)?.object,
            let right = JSONText.parse(right.bytes)?.object
        else { return false }
        let names = comparedMembers ?? Set(left.keys + right.keys)
        return names.subtracting(ignoredMembers).allSatisfy { left[$0] == right[$0] }
    }

    public func request(for operation: SyncOperation) -> SyncRequestContent {
        switch operation {
        case .probe: return SyncRequestContent(method: "GET", target: path)
        case .refresh(let token): return SyncRequestContent(refresh: token, path: refreshPath)
        case .contents: return SyncRequestContent(method: "GET", target: path)
        case .index(_, let entityTag):
            return SyncRequestContent(
                method: "GET", target: path, headers: entityTag.map { [(name: "If-None-Match", value: $0)] } ?? [])
        case .fetch(let id): return SyncRequestContent(method: "GET", target: path(of: id))
        case .create(let id, let content, let operation):
            return write("POST", path, id, content, base: nil, operation)
        case .update(let id, let content, let base, let operation):
            return write("PUT", path(of: id), id, content, base: base, operation)
        case .delete(let id, let base, let operation):
            return SyncRequestContent(
                method: "DELETE", target: path(of: id),
                headers: [
                    (name: "Idempotency-Key", value: operation), (name: "If-Match", value: "\"\(base)\""),
                ])
        }
    }

    private func path(of id: RecordID) -> String {
        let segment = PercentEncoding.encode(id.text)
        return path.hasSuffix("/") ? "\(path)\(segment)/" : "\(path)/\(segment)"
    }

    private func write(
        _ method: String, _ target: String, _ id: RecordID, _ content: RecordContent, base: RecordRevision?,
        _ operation: String
    ) -> SyncRequestContent {
        var object = JSONText.parse(content.bytes)?.object ?? JSONObject()
        object[identifierKey] = .text(id.text)
        var headers = [
            (name: "Idempotency-Key", value: operation), (name: "Content-Type", value: "application/json"),
        ]
        if let base {
            object[revisionKey] = base.number.map { .integer(Int64($0)) } ?? .text(base.description)
            headers.append((name: "If-Match", value: "\"\(base)\""))
        }
        return SyncRequestContent(
            method: method, target: target, headers: headers, body: Array(JSONValue.object(object).json.utf8))
    }

    public func reply(to operation: SyncOperation, _ response: SyncResponse) -> SyncReply {
        SyncReply(
            result(of: response, to: operation),
            retryAfter: [429, 503].contains(response.status) ? response.retryAfter : nil)
    }

    private func result(of response: SyncResponse, to operation: SyncOperation) -> SyncResult {
        let status = response.status
        let isMarked = marker.map { response.header($0.name) == $0.value } ?? true
        let hasBody = (200..<300).contains(status) && status != 204
        guard isMarked, !hasBody || response.isJSON else {
            if [408, 425, 429, 502, 503, 504].contains(status) { return .gatewayError(status: status) }
            return .foreign(
                ForeignServerError(
                    status: status, contentType: response.header("Content-Type"), expected: serverDescription))
        }
        if let result = SyncResult(status: status, of: operation) { return result }
        switch (operation, status) {
        case (.probe, 200), (.delete, 200), (.delete, 204): return .done
        case (.refresh(let token), 200):
            return SyncTokens(json: response.body, sent: token).map(SyncResult.tokens)
                ?? .invalid("the response has no access token")
        case (.index, 304): return .notModified
        case (.index, 200), (.contents, 200): return index(response)
        case (.fetch, 200), (.create, 200), (.create, 201), (.update, 200):
            guard let object = JSONText.parse(response.body)?.object else {
                return .invalid("the response is not a record")
            }
            guard let (id, revision) = identity(of: object) else { return .invalid(noIdentity) }
            return .record(RemoteRecord(id: id, revision: revision, content: content(object)))
        case (_, 400..<500): return .rejected(status: status)
        default: return .invalid("the response has the status \(status)")
        }
    }

    private var noIdentity: String { "it has no '\(identifierKey)' or no '\(revisionKey)'" }

    private func identity(of object: JSONObject) -> (RecordID, RecordRevision)? {
        guard let id = object[identifierKey]?.text, !id.isEmpty else { return nil }
        switch object[revisionKey] {
        case .text(let text): return (RecordID(id), RecordRevision(text))
        case .integer(let number): return (RecordID(id), RecordRevision("\(number)", number: Int(number)))
        default: return nil
        }
    }

    private func index(_ response: SyncResponse) -> SyncResult {
        guard case .array(let elements)? = JSONText.parse(response.body) else {
            return .invalid("the response is not an index")
        }
        var index = RemoteIndex(entries: [], entityTag: response.header("ETag"))
        for element in elements {
            if let object = element.object, let (id, revision) = identity(of: object) {
                let isDeleted = object["deleted"] == .bool(true)
                index.entries.append(
                    RemoteIndex.Entry(
                        id: id, revision: revision, isDeleted: isDeleted,
                        content: indexHasContents && !isDeleted ? content(object) : nil))
            } else {
                let id = element.object?[identifierKey]?.text ?? ""
                index.unreadable[RecordID(id)] = noIdentity
            }
        }
        return .index(index)
    }
}
