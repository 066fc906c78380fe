internal import HTTPTypes
internal import NotesContract
internal import Wire

/// `/test-hooks/`: the test hooks over HTTP. They need no authentication, because the server listens on a loopback address.
extension NotesService {
    func handleTestHooks(_ request: APIRequest, _ testHooks: TestHooks) -> Response {
        mapErrors {
            // A web page in a browser on this machine must not reach the hooks.
            guard Self.isLoopback(request.http.authority ?? "localhost"), request.http.headerFields[.origin] == nil
            else {
                throw HTTPProblem(
                    .forbidden, "Test hooks are available from this machine only, and not to web pages", key: "detail")
            }
            let segments = request.path.split(separator: "/").dropFirst().map(String.init)
            switch (request.method, segments.first, segments.count) {
            case (.get, nil, 0): return .json(.ok, state(of: testHooks))
            case (.delete, nil, 0):
                testHooks.reset()
                return Response(.noContent)
            case (.put, "clock", 1): return try setClock(request, testHooks)
            case (.delete, "clock", 1):
                testHooks.fixedTime = nil
                return Response(.noContent)
            case (_, "rules", _): return try handleRules(request, Array(segments.dropFirst()), testHooks)
            case (_, "snapshots", _): return try handleSnapshots(request, Array(segments.dropFirst()), testHooks)
            default: throw HTTPProblem.notFound
            }
        }
    }

    /// Returns whether an authority is exactly a loopback name or address, not only a name that begins like one.
    private static func isLoopback(_ authority: String) -> Bool {
        let authority = authority.lowercased()
        if authority == "[::1]" || authority.hasPrefix("[::1]:") { return true }
        let host = authority.prefix { $0 != ":" }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return host == "localhost" || numbers.count == 4 && numbers[0] == 127 && !numbers.contains(nil)
    }

    private func setClock(_ request: APIRequest, _ testHooks: TestHooks) throws -> Response {
        guard case .text(let text)? = JSONText.parse(request.body)?.object?["now"],
            let stored = NoteDate.normalised(text), let milliseconds = NoteDate.milliseconds(stored: stored)
        else {
            throw HTTPProblem(
                fields: ["now": "Expected a date and time with an offset, such as 2026-03-01T08:30:00Z."])
        }
        testHooks.fixedTime = milliseconds
        return Response(.noContent)
    }

    private func handleRules(_ request: APIRequest, _ segments: [String], _ testHooks: TestHooks) throws -> Response {
        if request.method == .post, segments.isEmpty {
            guard let object = JSONText.parse(request.body)?.object else {
                throw HTTPProblem(.badRequest, "Expected a JSON object", key: "detail")
            }
            guard let id = try testHooks.add(TestHooks.Rule(object)) else {
                throw HTTPProblem(.badRequest, "There are \(TestHooks.entriesMax) rules already", key: "detail")
            }
            return .json(.created, #"{"id":\#(id)}"#)
        }
        guard let id = segments.first.flatMap({ Int($0) }) else { throw HTTPProblem.notFound }
        switch (request.method, segments.count) {
        case (.post, 2) where segments[1] == "release":
            guard let count = testHooks.release(id) else { throw HTTPProblem.notFound }
            return .json(.ok, #"{"released":\#(count)}"#)
        case (.delete, 1):
            guard testHooks.remove(id) else { throw HTTPProblem.notFound }
            return Response(.noContent)
        default: throw HTTPProblem.notFound
        }
    }

    private func handleSnapshots(_ request: APIRequest, _ segments: [String], _ testHooks: TestHooks) throws -> Response
    {
        if request.method == .post, segments.isEmpty {
            guard let id = try testHooks.addSnapshot(store.snapshot()) else {
                throw HTTPProblem(.badRequest, "There are \(TestHooks.entriesMax) snapshots already", key: "detail")
            }
            return .json(.created, #"{"id":\#(id)}"#)
        }
        guard let id = segments.first.flatMap({ Int($0) }), let snapshot = testHooks.snapshot(id) else {
            throw HTTPProblem.notFound
        }
        switch (request.method, segments.count) {
        case (.post, 2) where segments[1] == "restore":
            try store.restore(snapshot)
            return Response(.noContent)
        case (.delete, 1):
            testHooks.removeSnapshot(id)
            return Response(.noContent)
        default: throw HTTPProblem.notFound
        }
    }

    private func state(of testHooks: TestHooks) -> String {
        let rules = testHooks.entries.map { entry in
            JSONText.object([
                ("id", "\(entry.id)"), ("method", JSONText.string(entry.rule.method)),
                ("path", JSONText.string(entry.rule.path)), ("nth", entry.rule.nth.map { "\($0)" } ?? "null"),
                ("do", JSONText.string(entry.rule.action.name)), ("seen", "\(entry.matchedRequests)"),
                ("fired", "\(entry.affectedRequests)"), ("held", "\(entry.barriers.count)"),
            ])
        }
        return JSONText.object([
            ("clock", JSONText.string(testHooks.fixedTime.map { NoteDate.text(millisecondsSince1970: $0) })),
            ("rules", JSONText.array(rules)),
            ("snapshots", JSONText.array(testHooks.snapshotIDs.map { "\($0)" })),
        ])
    }
}

extension TestHooks.Action {
    var name: String {
        switch self {
        case .hold: "hold"
        case .drop: "drop"
        case .respond: "respond"
        }
    }
}

extension TestHooks.Rule {
    /// Creates a rule from `{"method":"PUT","path":"/api/notes/*","nth":1,"do":"hold"}`; `"do":"respond"` also has
    /// `status`, `headers` and `body`.
    init(_ object: JSONObject) throws {
        let known = ["method", "path", "nth", "do", "status", "headers", "body"]
        if let other = object.keys.first(where: { name in !known.contains { $0.hasSameBytes(as: name) } }) {
            let name = String(decoding: other.utf8.prefix(60), as: UTF8.self)
            throw HTTPProblem(fields: [name: "Unknown field; the fields are \(known.joined(separator: ", "))."])
        }
        guard case .text(let path)? = object["path"], path.utf8.first == UInt8(ascii: "/") else {
            throw HTTPProblem(fields: ["path": "Expected a path such as /api/notes/ or /api/notes/*."])
        }
        guard let method = object["method"].optionalText else {
            throw HTTPProblem(fields: ["method": "Expected a method, or no field for any method."])
        }
        var nth: Int?
        switch object["nth"] {
        case nil, .null?: break
        case .integer(let number)? where number >= 1: nth = Int(number)
        default: throw HTTPProblem(fields: ["nth": "Expected a number from 1, or no field for all requests."])
        }
        self.init(method: method, path: path, nth: nth, action: try TestHooks.Action(object))
    }
}

extension TestHooks.Action {
    fileprivate init(_ object: JSONObject) throws {
        // Comparing long strings of a client can be slow.
        switch object["do"]?.text.flatMap({ $0.utf8.count <= 16 ? $0 : nil }) {
        case "hold"?: self = .hold
        case "drop"?: self = .drop
        case "respond"?:
            guard case .integer(let status)? = object["status"], (200...599).contains(status) else {
                throw HTTPProblem(fields: ["status": "Expected a status from 200 to 599."])
            }
            guard let body = object["body"].optionalText else {
                throw HTTPProblem(fields: ["body": "Expected a text."])
            }
            var headers = HTTPFields()
            for (name, value) in object["headers"]?.object?.membersInSourceOrder ?? [] {
                guard let name = HTTPField.Name(name), let text = value.text, HTTPField.isValidValue(text) else {
                    throw HTTPProblem(fields: ["headers": "Expected header fields and their values."])
                }
                headers.append(HTTPField(name: name, value: text))
            }
            self = .respond(status: Int(status), headers: headers, body: body ?? "")
        default: throw HTTPProblem(fields: ["do": "Expected hold, drop or respond."])
        }
    }
}
