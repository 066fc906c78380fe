internal import Determinism
internal import Wire

/// What a user has: articles, profiles, feedbacks, accounts and operations.
struct ReaderShelf: Sendable {
    private struct Operation: Sendable {
        let fingerprint: UInt64
        let result: ReaderResult
    }

    private var records: [ByteKey: ReaderRecord] = [:]
    /// Feedbacks and accounts in the order in which they were made.
    private var submissions: [ReaderRecord] = []
    private var operations: [ByteKey: Operation] = [:]
    /// The operation ids in the order of their executions.
    private var operationOrder: [ByteKey] = []
    /// The texts of push notices by operation id, and the ids in the order of the notices.
    private var notices: (texts: [ByteKey: String], order: [ByteKey]) = ([:], [])

    private var sorted: [ReaderRecord] { records.sorted { $0.key < $1.key }.map(\.value) }
    private var articles: [ReaderRecord] { sorted.filter { $0.kind == .article } }

    var allRecords: [ReaderRecord] { sorted + submissions }

    mutating func seed(_ record: ReaderRecord) -> Bool {
        let texts = [record.title, record.text, record.birthday, record.picture].compactMap(\.self)
        guard (1...ReaderService.Limits.keyBytesMax).contains(record.key.utf8.count),
            texts.allSatisfy({ $0.utf8.count <= ReaderService.Limits.valueBytesMax }), !record.title.isEmpty,
            records.count < ReaderService.Limits.recordsMax, records[ByteKey(record.key)] == nil
        else { return false }
        switch record.kind {
        case .profile: break
        case .article:
            guard let author = record.author, records[ByteKey(author)]?.kind == .profile else { return false }
        case .feedback, .account: return false
        }
        records[ByteKey(record.key)] = record
        return true
    }

    /// Changes the title or the text of an article or profile, or deletes it without both.
    mutating func change(_ key: String, title: String?, text: String?) -> Bool {
        guard var record = records[ByteKey(key)] else { return false }
        guard title != nil || text != nil else {
            records[ByteKey(key)] = nil
            return true
        }
        record.title = title ?? record.title
        record.text = text ?? record.text
        record.revision += 1
        records[ByteKey(key)] = record
        return true
    }

    // MARK: Routing

    mutating func respond(to request: ReaderServiceRequest) -> ReaderResult {
        func get(_ result: () -> ReaderResult) -> ReaderResult {
            request.method == "GET" ? result() : .methodNotAllowed(["GET"])
        }
        switch (request.segments.first, request.segments.count) {
        case (nil, _): return get { ReaderResult(200, ["service": "reader"]) }
        case ("articles"?, 1): return get { tagged(list, articles.reduce(0) { $0 + $1.revision }, request) }
        case ("articles"?, 2):
            guard let record = record(request.segments[1], .article) else { return unknown }
            return get { tagged(article(record), record.revision, request) }
        case ("articles"?, 3) where request.segments[2] == "like":
            guard let record = record(request.segments[1], .article) else { return unknown }
            guard ["PUT", "DELETE"].contains(request.method) else { return .methodNotAllowed(["PUT", "DELETE"]) }
            return like(record, request.method == "PUT")
        case ("profiles"?, 2):
            guard let record = record(request.segments[1], .profile) else { return unknown }
            return get { tagged(profile(record), record.revision, request) }
        case ("pictures"?, 2):
            guard let picture = record(request.segments[1], .profile)?.picture else { return unknown }
            return get { ReaderResult(200, ["picture": .text(picture)]) }
        case ("recommendations"?, 1): return get { recommendation }
        case ("feedback"?, 1), ("accounts"?, 1):
            guard request.method == "POST" else { return .methodNotAllowed(["POST"]) }
            return submit(request, isFeedback: request.segments[0] == "feedback")
        default: return unknown
        }
    }

    private var unknown: ReaderResult { ReaderResult(404, error: "there is no such resource") }

    private func record(_ key: String, _ kind: ReaderRecord.Kind) -> ReaderRecord? {
        records[ByteKey(key)].flatMap { $0.kind == kind ? $0 : nil }
    }

    // MARK: Reads

    /// Returns a body with its entity tag, or a 304.
    private func tagged(_ body: JSONValue, _ revision: Int, _ request: ReaderServiceRequest) -> ReaderResult {
        let tag = Self.entityTag(of: body, revision: revision)
        let isKnown = request.knownTags.contains { $0.hasSameBytes(as: tag) || $0 == "*" }
        var result = ReaderResult(isKnown ? 304 : 200, body)
        result.entityTag = tag
        return result
    }

    private static func entityTag(of body: JSONValue, revision: Int) -> String {
        let digest = String(FNV1a.digest(body.json.utf8), radix: 16)
        return "\"\(revision)-\(String(repeating: "0", count: 16 - digest.utf8.count))\(digest)\""
    }

    private var list: JSONValue {
        let entries = articles.map { article -> JSONValue in
            let author = article.author ?? ""
            return [
                "key": .text(article.key), "title": .text(article.title), "author": .text(author),
                "authorName": .text(records[ByteKey(author)]?.title ?? ""), "liked": .bool(article.isLiked),
            ]
        }
        return ["articles": .array(entries)]
    }

    private func article(_ record: ReaderRecord) -> JSONValue {
        [
            "key": .text(record.key), "title": .text(record.title), "text": .text(record.text ?? ""),
            "author": .text(record.author ?? ""), "liked": .bool(record.isLiked),
        ]
    }

    private func profile(_ record: ReaderRecord) -> JSONValue {
        var object: JSONObject = ["key": .text(record.key), "name": .text(record.title)]
        object["about"] = record.text.map { .text($0) }
        object["birthday"] = record.birthday.map { .text($0) }
        object["picture"] = record.picture.map { _ in .text("\(ReaderService.basePath)/pictures/\(record.key)") }
        return .object(object)
    }

    private var recommendation: ReaderResult {
        guard let found = articles.first(where: { !$0.isLiked }) else {
            return ReaderResult(404, error: "there is no article that the user has not liked")
        }
        return ReaderResult(200, ["key": .text(found.key), "title": .text(found.title)])
    }

    // MARK: Writes

    private mutating func like(_ record: ReaderRecord, _ isLiked: Bool) -> ReaderResult {
        if record.isLiked != isLiked {
            var record = record
            record.isLiked = isLiked
            record.revision += 1
            records[ByteKey(record.key)] = record
        }
        return ReaderResult(200, ["key": .text(record.key), "liked": .bool(isLiked)])
    }

    /// Executes a form once for each operation id.
    private mutating func submit(_ request: ReaderServiceRequest, isFeedback: Bool) -> ReaderResult {
        guard let operation = request.operation.map({ ByteKey($0) }) else {
            return ReaderResult(400, error: "a form needs an Idempotency-Key of 1 to 255 bytes")
        }
        guard var fields = JSONText.parse(request.body)?["fields"].object,
            fields.allSatisfy({ $0.value.text != nil })
        else { return ReaderResult(400, error: "expected JSON with fields, which are texts by name") }
        let password = fields["password"]?.text
        // Nothing of a password is kept.
        fields["password"] = nil
        let fingerprint = FNV1a.digest("\(request.segments[0])\n\(JSONValue.object(fields).json)".utf8)
        if let known = operations[operation] {
            guard known.fingerprint == fingerprint else {
                return .keyReused
            }
            var result = known.result
            result.isReplayed = true
            return result
        }
        var result = isFeedback ? addFeedback(fields) : addAccount(fields, password: password)
        if isFeedback { addNotice(of: operation, result.status) }
        guard result.status == 201 else { return result }
        result.entityTag = Self.entityTag(of: result.body, revision: 1)
        if operationOrder.count >= ReaderService.Limits.resultsMax { operations[operationOrder.removeFirst()] = nil }
        operationOrder.append(operation)
        operations[operation] = Operation(fingerprint: fingerprint, result: result)
        return result
    }

    /// Returns the text of the push notice about an operation.
    func notice(of operation: String) -> String? { notices.texts[ByteKey(operation)] }

    /// Keeps the text of a push notice about the result of a feedback. A result that may change has none.
    private mutating func addNotice(of operation: ByteKey, _ status: Int) {
        let text: String
        switch status {
        case 201: text = ReaderText.pushedResult
        case 422: text = ReaderText.pushedRejection
        default: return
        }
        if notices.texts.updateValue(text, forKey: operation) != nil { return }
        notices.order.append(operation)
        if notices.order.count > ReaderService.Limits.resultsMax {
            notices.texts[notices.order.removeFirst()] = nil
        }
    }

    private mutating func addFeedback(_ fields: JSONObject) -> ReaderResult {
        let message = fields["message"]?.text ?? ""
        let contact = fields["contact"]?.text ?? ""
        var errors: [(field: String, message: String)] = []
        if !(1...ReaderService.Limits.messageBytesMax).contains(message.utf8.count) {
            errors.append(("message", "is missing or too long"))
        }
        if contact.utf8.count > ReaderService.Limits.contactBytesMax { errors.append(("contact", "is too long")) }
        guard errors.isEmpty else { return .rejection(errors) }
        let count = submissions.count { $0.kind == .feedback }
        guard count < ReaderService.Limits.feedbacksMax else {
            return ReaderResult(507, error: "the user has the maximum number of feedbacks")
        }
        submissions.append(
            ReaderRecord(
                key: "feedback-\(count + 1)", kind: .feedback, title: contact.isEmpty ? "anonymous" : contact,
                text: message))
        return ReaderResult(201, ["number": .integer(Int64(count + 1))])
    }

    private mutating func addAccount(_ fields: JSONObject, password: String?) -> ReaderResult {
        let name = fields["name"]?.text ?? ""
        let accounts = submissions.filter { $0.kind == .account }
        var errors: [(field: String, message: String)] = []
        if !(1...ReaderService.Limits.nameBytesMax).contains(name.utf8.count) {
            errors.append(("name", "is missing or too long"))
        } else if accounts.contains(where: { $0.title.hasSameBytes(as: name) }) {
            errors.append(("name", "is in use"))
        }
        let lengths = ReaderService.Limits.passwordBytes
        let length = password?.utf8.count ?? 0
        if length < lengths.lowerBound {
            errors.append(("password", "has fewer than \(lengths.lowerBound) bytes"))
        } else if length > lengths.upperBound {
            errors.append(("password", "has more than \(lengths.upperBound) bytes"))
        }
        guard errors.isEmpty else { return .rejection(errors) }
        guard accounts.count < ReaderService.Limits.accountsMax else {
            return ReaderResult(507, error: "the user has the maximum number of accounts")
        }
        submissions.append(ReaderRecord(key: "account-\(accounts.count + 1)", kind: .account, title: name))
        return ReaderResult(201, ["name": .text(name)])
    }
}
