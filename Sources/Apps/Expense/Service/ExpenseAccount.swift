internal import Wire

/// The records, updates and operations of a user.
struct ExpenseAccount: Sendable {
    private struct Operation: Sendable {
        let fingerprint: UInt64
        let result: ExpenseResult
    }

    private var records: [ByteKey: ExpenseRecord] = [:]
    /// The number of the update with which each deleted record was deleted.
    private var deleted: [ByteKey: Int] = [:]
    private var lastUpdate = 0
    private var operations: [ByteKey: Operation] = [:]
    /// The operation ids in the order of their executions.
    private var operationOrder: [ByteKey] = []
    /// The balance in cents.
    private var balanceCents = 100_00
    /// The number of statements that were ordered.
    private var statements = 0

    var sortedRecords: [ExpenseRecord] { records.values.sorted { $0.update < $1.update } }

    mutating func seed(_ record: ExpenseRecord) -> Bool {
        guard records[ByteKey(record.key)] == nil, record.parent.map({ records[ByteKey($0)] != nil }) ?? true else {
            return false
        }
        store(record)
        return true
    }

    private mutating func store(_ record: ExpenseRecord) {
        var record = record
        lastUpdate += 1
        record.update = lastUpdate
        records[ByteKey(record.key)] = record
    }

    // MARK: Routing

    mutating func respond(to request: ExpenseRequest, history: Int) -> ExpenseResult {
        switch (request.segments.first, request.segments.count) {
        case (nil, _):
            return request.method == "GET" ? ExpenseResult(200, ["service": "expense"]) : methodNotAllowed
        case ("updates"?, 1):
            return request.method == "GET" ? updates(since: request.since, history: history) : methodNotAllowed
        case ("pages"?, 2) where request.segments[1] == "statement":
            guard request.method == "POST" else { return methodNotAllowed }
            return execute(request) { account in account.orderStatement() }
        case ("pages"?, 2): return request.method == "GET" ? page(request.segments[1]) : methodNotAllowed
        case ("search"?, 1): return request.method == "GET" ? search(request.title ?? "") : methodNotAllowed
        case ("operations"?, 2):
            return request.method == "GET" ? operation(request.segments[1]) : methodNotAllowed
        case ("records"?, 2):
            guard ["PUT", "PATCH", "DELETE"].contains(request.method) else { return methodNotAllowed }
            let key = request.segments[1]
            return execute(request) { account in account.write(request, key: key) }
        case ("transfers"?, 1):
            guard request.method == "POST" else { return methodNotAllowed }
            return execute(request) { account in account.transfer(request) }
        default: return ExpenseResult(404, error: "unknown path")
        }
    }

    private var methodNotAllowed: ExpenseResult { ExpenseResult(405, error: "the resource does not have this method") }

    /// Executes a write once for each operation id.
    private mutating func execute(
        _ request: ExpenseRequest, _ body: (inout ExpenseAccount) -> ExpenseResult
    ) -> ExpenseResult {
        guard let operation = request.operation.map({ ByteKey($0) }) else {
            return ExpenseResult(400, error: "a write needs an Idempotency-Key of 1 to 255 bytes")
        }
        if let known = operations[operation] {
            guard known.fingerprint == request.fingerprint else {
                return .keyReused
            }
            var result = known.result
            result.isReplayed = true
            return result
        }
        let result = body(&self)
        // What was not executed may be repeated with other content.
        guard (200...299).contains(result.status) else { return result }
        if operationOrder.count >= ExpenseService.Limits.resultsMax {
            operations[operationOrder.removeFirst()] = nil
        }
        operationOrder.append(operation)
        operations[operation] = Operation(fingerprint: request.fingerprint, result: result)
        return result
    }

    // MARK: Reads

    private func updates(since: Int?, history: Int) -> ExpenseResult {
        let since = max(0, since ?? 0)
        var found: [(update: Int, json: JSONValue)] = []
        for record in records.values where record.update > since {
            found.append((record.update, ["update": .integer(Int64(record.update)), "record": record.json]))
        }
        // A client without records has nothing to delete.
        for (key, update) in deleted where update > since && since > 0 {
            found.append((update, ["update": .integer(Int64(update)), "deleted": .text(key.text)]))
        }
        found.sort { $0.update < $1.update }
        let hasMore = found.count > ExpenseService.Limits.updatesMax
        if hasMore { found = Array(found.prefix(ExpenseService.Limits.updatesMax)) }
        let last = hasMore ? found.last?.update ?? lastUpdate : lastUpdate
        return ExpenseResult(
            200,
            [
                "history": .text("h\(history)"), "last": .integer(Int64(last)), "more": .bool(hasMore),
                "updates": .array(found.map(\.json)),
            ])
    }

    private func page(_ name: String) -> ExpenseResult {
        guard name == "balance" else { return ExpenseResult(404, error: "unknown page") }
        return ExpenseResult(200, ["content": ["balance": .text(ExpenseAmount.text(cents: balanceCents))]])
    }

    private func search(_ title: String) -> ExpenseResult {
        let found = sortedRecords.filter { record in
            record.kind == .expense && !title.isEmpty && record.text("title").map { $0.contains(title) } ?? false
        }
        return ExpenseResult(200, ["content": ["found": .text("\(found.count)")]])
    }

    /// Orders a statement of all expenses; there must be one.
    private mutating func orderStatement() -> ExpenseResult {
        let expenses = records.values.filter { $0.kind == .expense }
        guard !expenses.isEmpty else { return ExpenseResult(409, error: "there are no expenses") }
        statements += 1
        var result = ExpenseResult(
            201, ["content": ["statement": .text("\(statements)"), "expenses": .text("\(expenses.count)")]])
        // A repeated response has the tag of the first.
        result.entityTag = "\"\(statements)-\(lastUpdate)\""
        return result
    }

    private func operation(_ id: String) -> ExpenseResult {
        guard let known = operations[ByteKey(id)] else {
            return ExpenseResult(404, error: "no operation with this id was executed")
        }
        return ExpenseResult(200, ["status": .integer(Int64(known.result.status)), "result": known.result.body])
    }

    // MARK: Writes

    private static func fields(of request: ExpenseRequest) -> JSONObject? {
        guard let fields = JSONText.parse(request.body)?["fields"].object,
            fields.allSatisfy({ $0.value.text != nil && $0.value.text!.utf8.count <= 4096 }), fields.count <= 32
        else { return nil }
        return fields
    }

    private mutating func write(_ request: ExpenseRequest, key: String) -> ExpenseResult {
        guard (1...64).contains(key.utf8.count) else { return ExpenseResult(400, error: "a key has 1 to 64 bytes") }
        let previous = lastUpdate
        switch request.method {
        case "PUT":
            guard let fields = Self.fields(of: request), let body = JSONText.parse(request.body) else {
                return ExpenseResult(400, error: "expected JSON with kind, parent and fields")
            }
            return add(key, body, fields, previous)
        case "PATCH":
            guard let changed = Self.fields(of: request) else {
                return ExpenseResult(400, error: "expected JSON with fields")
            }
            guard var record = records[ByteKey(key)] else { return ExpenseResult(404, error: "unknown record") }
            let errors = Self.errors(in: changed, of: record.kind, isNew: false)
            guard errors.isEmpty else { return .rejection(errors) }
            for (name, value) in changed { record.fields[name] = value }
            record.revision += 1
            store(record)
            return done(200, key, previous)
        default:
            guard let record = records[ByteKey(key)] else { return ExpenseResult(404, error: "unknown record") }
            guard record.kind == .expense, record.text("state") != "approved" else {
                return .rejection([("", record.kind == .expense ? "approved, cannot be deleted" : "cannot be deleted")])
            }
            records[ByteKey(key)] = nil
            lastUpdate += 1
            deleted[ByteKey(key)] = lastUpdate
            return done(200, key, previous)
        }
    }

    /// Changes fields of a record, or deletes it without fields.
    mutating func change(_ key: String, fields: [(name: String, value: String)]?) -> Bool {
        guard var record = records[ByteKey(key)] else { return false }
        guard let fields else {
            records[ByteKey(key)] = nil
            lastUpdate += 1
            deleted[ByteKey(key)] = lastUpdate
            return true
        }
        for (name, value) in fields { record.fields[name] = .text(value) }
        record.revision += 1
        store(record)
        return true
    }

    private func done(_ status: Int, _ key: String, _ previous: Int) -> ExpenseResult {
        let record = records[ByteKey(key)]
        var result = ExpenseResult(
            status,
            [
                "update": .integer(Int64(lastUpdate)), "previous": .integer(Int64(previous)),
                "record": record?.json ?? .null,
            ])
        result.entityTag = record.map { "\"\($0.revision)-\(lastUpdate)\"" }
        return result
    }

    private mutating func add(
        _ key: String, _ body: JSONValue, _ fields: JSONObject, _ previous: Int
    ) -> ExpenseResult {
        guard body["kind"].text == ExpenseRecord.Kind.expense.rawValue, let parent = body["parent"].text else {
            return ExpenseResult(400, error: "a client adds expenses with a report as parent")
        }
        guard records[ByteKey(key)] == nil, deleted[ByteKey(key)] == nil else {
            return ExpenseResult(409, error: "the key is in use")
        }
        guard records.count < ExpenseService.Limits.recordsMax else {
            return ExpenseResult(507, error: "the account has the maximum number of records")
        }
        var errors = Self.errors(in: fields, of: .expense, isNew: true)
        if records[ByteKey(parent)]?.kind != .report { errors.append(("", "the report does not exist")) }
        guard errors.isEmpty else { return .rejection(errors) }
        var record = ExpenseRecord(key: key, kind: .expense, parent: parent, fields: [])
        record.fields = fields
        store(record)
        return done(201, key, previous)
    }

    /// Returns the messages about fields.
    private static func errors(
        in fields: JSONObject, of kind: ExpenseRecord.Kind, isNew: Bool
    ) -> [(field: String, message: String)] {
        var errors: [(field: String, message: String)] = []
        if isNew || fields["title"] != nil {
            let count = fields["title"]?.text?.utf8.count ?? 0
            if !(1...ExpenseService.Limits.titleBytesMax).contains(count) {
                errors.append(("title", "is missing or too long"))
            }
        }
        if kind == .expense, isNew || fields["amount"] != nil {
            switch fields["amount"]?.text.flatMap({ ExpenseAmount.cents($0) }) {
            case nil, 0?: errors.append(("amount", "is not an amount"))
            case let cents? where cents > ExpenseService.Limits.expenseCentsMax:
                errors.append(
                    (
                        "amount",
                        "exceeds the limit of \(ExpenseAmount.text(cents: ExpenseService.Limits.expenseCentsMax))"
                    ))
            default: break
            }
        }
        if fields["state"] != nil { errors.append(("state", "is set by the approver")) }
        if let pinned = fields["pinned"]?.text, pinned != "true", pinned != "false" {
            errors.append(("pinned", "is not true or false"))
        }
        return errors
    }

    private mutating func transfer(_ request: ExpenseRequest) -> ExpenseResult {
        guard let fields = Self.fields(of: request), let operation = request.operation else {
            return ExpenseResult(400, error: "expected JSON with fields")
        }
        var errors: [(field: String, message: String)] = []
        let cents = fields["amount"]?.text.flatMap { ExpenseAmount.cents($0) } ?? 0
        if cents == 0 {
            errors.append(("amount", "is not an amount"))
        } else if cents > balanceCents {
            errors.append(("amount", "exceeds the balance of \(ExpenseAmount.text(cents: balanceCents))"))
        }
        let to = fields["to"]?.text ?? ""
        if to.isEmpty { errors.append(("to", "is missing")) }
        guard errors.isEmpty else { return .rejection(errors) }
        let previous = lastUpdate
        balanceCents -= cents
        let key = String(operation.prefix(64))
        store(
            ExpenseRecord(
                key: key, kind: .transfer,
                fields: [
                    ("title", to), ("amount", ExpenseAmount.text(cents: cents)), ("memo", fields["memo"]?.text ?? ""),
                ]))
        return done(201, key, previous)
    }
}

/// Amounts of money: decimal numbers with at most two decimals.
enum ExpenseAmount {
    /// The greatest number of digits before the point.
    private static let digitsMax = 9

    /// Returns the number of cents; `nil` if the text is not an amount.
    static func cents(_ text: String) -> Int? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), (1...digitsMax).contains(parts[0].count), parts.allSatisfy(isNumber) else {
            return nil
        }
        var value = number(parts[0]) * 100
        if parts.count == 2 {
            guard (1...2).contains(parts[1].count) else { return nil }
            value += number(parts[1]) * (parts[1].count == 1 ? 10 : 1)
        }
        return value
    }

    private static func isNumber(_ digits: Substring.UTF8View.SubSequence) -> Bool {
        digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    private static func number(_ digits: Substring.UTF8View.SubSequence) -> Int {
        digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    /// Returns an amount with two decimals.
    static func text(cents: Int) -> String {
        let rest = cents % 100
        return "\(cents / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}
