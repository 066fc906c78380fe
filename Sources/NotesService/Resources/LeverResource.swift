internal import HTTPTypes
internal import JSON
internal import NotesContract

/// `/levers/`: how a test moves them over HTTP. Needs no user; the server listens on the loopback only.
extension NotesService {
    func answer(lever call: Call, _ levers: Levers) -> Answer {
        attempt {
            // A web page that a browser on this machine shows must not.
            guard Self.isThisMachine(call.request.authority ?? "localhost"), call.request.headerFields[.origin] == nil
            else {
                throw Refusal(.forbidden, "Levers are moved from this machine, and not by a web page", key: "detail")
            }
            let words = call.path.split(separator: "/").dropFirst().map(String.init)
            switch (call.method, words.first, words.count) {
            case (.get, nil, 0): return .json(.ok, state(of: levers))
            case (.delete, nil, 0):
                levers.clear()
                return Answer(.noContent)
            case (.put, "clock", 1): return try setClock(call, levers)
            case (.delete, "clock", 1):
                levers.clock = nil
                return Answer(.noContent)
            case (_, "rules", _): return try answerRules(call, Array(words.dropFirst()), levers)
            case (_, "snapshots", _): return try answerSnapshots(call, Array(words.dropFirst()), levers)
            default: throw Refusal.notFound
            }
        }
    }

    /// Whether a host's name is one of the loopback's; a name that only begins so is somebody else's.
    private static func isThisMachine(_ authority: String) -> Bool {
        let authority = authority.lowercased()
        if authority == "[::1]" || authority.hasPrefix("[::1]:") { return true }
        let host = authority.prefix { $0 != ":" }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return host == "localhost" || numbers.count == 4 && numbers[0] == 127 && !numbers.contains(nil)
    }

    private func setClock(_ call: Call, _ levers: Levers) throws -> Answer {
        guard case .text(let text)? = JSONText.parse(call.body)?.object?["now"],
            let stored = NoteDate.normalised(text), let moment = NoteDate.milliseconds(stored: stored)
        else { throw Refusal(fields: ["now": "Expected a date and time with an offset, as 2026-03-01T08:30:00Z."]) }
        levers.clock = moment
        return Answer(.noContent)
    }

    private func answerRules(_ call: Call, _ words: [String], _ levers: Levers) throws -> Answer {
        if call.method == .post, words.isEmpty {
            guard let object = JSONText.parse(call.body)?.object else {
                throw Refusal(.badRequest, "Expected a JSON object", key: "detail")
            }
            guard let id = try levers.add(Levers.Rule(object)) else {
                throw Refusal(.badRequest, "There are \(Levers.countMax) rules already", key: "detail")
            }
            return .json(.created, #"{"id":\#(id)}"#)
        }
        guard let id = words.first.flatMap({ Int($0) }) else { throw Refusal.notFound }
        switch (call.method, words.count) {
        case (.post, 2) where words[1] == "release":
            guard let count = levers.release(id) else { throw Refusal.notFound }
            return .json(.ok, #"{"released":\#(count)}"#)
        case (.delete, 1):
            guard levers.remove(id) else { throw Refusal.notFound }
            return Answer(.noContent)
        default: throw Refusal.notFound
        }
    }

    private func answerSnapshots(_ call: Call, _ words: [String], _ levers: Levers) throws -> Answer {
        if call.method == .post, words.isEmpty {
            guard let id = try levers.keep(store.snapshot()) else {
                throw Refusal(.badRequest, "There are \(Levers.countMax) snapshots already", key: "detail")
            }
            return .json(.created, #"{"id":\#(id)}"#)
        }
        guard let id = words.first.flatMap({ Int($0) }), let snapshot = levers.snapshot(id) else {
            throw Refusal.notFound
        }
        switch (call.method, words.count) {
        case (.post, 2) where words[1] == "restore":
            try store.restore(snapshot)
            return Answer(.noContent)
        case (.delete, 1):
            _ = levers.forget(id)
            return Answer(.noContent)
        default: throw Refusal.notFound
        }
    }

    private func state(of levers: Levers) -> String {
        let rules = levers.entries.map { entry in
            JSONText.object([
                ("id", "\(entry.id)"), ("method", JSONText.string(entry.rule.method)),
                ("path", JSONText.string(entry.rule.path)), ("nth", entry.rule.nth.map { "\($0)" } ?? "null"),
                ("do", JSONText.string(entry.rule.action.name)), ("seen", "\(entry.seen)"),
                ("fired", "\(entry.fired)"), ("held", "\(entry.barriers.count)"),
            ])
        }
        return JSONText.object([
            ("clock", JSONText.string(levers.clock.map { NoteDate.text(millisecondsSince1970: $0) })),
            ("rules", JSONText.array(rules)),
            ("snapshots", JSONText.array(levers.snapshotIDs.map { "\($0)" })),
        ])
    }
}

extension Levers.Action {
    var name: String {
        switch self {
        case .hold: "hold"
        case .drop: "drop"
        case .answer: "answer"
        }
    }
}

extension Levers.Rule {
    /// Reads `{"method":"PUT","path":"/api/notes/*","nth":1,"do":"hold"}`; `"do":"answer"` takes `status`, `headers`, `body`.
    init(_ object: JSONObject) throws {
        let known = ["method", "path", "nth", "do", "status", "headers", "body"]
        if let other = object.keys.first(where: { name in !known.contains { $0.hasSameBytes(as: name) } }) {
            let name = String(decoding: other.utf8.prefix(60), as: UTF8.self)
            throw Refusal(fields: [name: "There is no such field; there are \(known.joined(separator: ", "))."])
        }
        guard case .text(let path)? = object["path"], path.utf8.first == UInt8(ascii: "/") else {
            throw Refusal(fields: ["path": "Expected a path, as /api/notes/ or /api/notes/*."])
        }
        guard let method = object["method"].optionalText else {
            throw Refusal(fields: ["method": "Expected a method, or none for any."])
        }
        var nth: Int?
        switch object["nth"] {
        case nil, .null?: break
        case .integer(let number)? where number >= 1: nth = Int(number)
        default: throw Refusal(fields: ["nth": "Expected a number from 1, or none for every."])
        }
        self.init(method: method, path: path, nth: nth, action: try Levers.Action(object))
    }
}

extension Levers.Action {
    fileprivate init(_ object: JSONObject) throws {
        // Longer texts are none of these, and slow to compare.
        switch object["do"]?.text.flatMap({ $0.utf8.count <= 16 ? $0 : nil }) {
        case "hold"?: self = .hold
        case "drop"?: self = .drop
        case "answer"?:
            guard case .integer(let status)? = object["status"], (200...599).contains(status) else {
                throw Refusal(fields: ["status": "Expected a status from 200 to 599."])
            }
            guard let body = object["body"].optionalText else {
                throw Refusal(fields: ["body": "Expected a text."])
            }
            var headers: [String: String] = [:]
            for (name, value) in object["headers"]?.object ?? [:] {
                guard HTTPField.Name(name) != nil, let text = value.text, HTTPField.isValidValue(text) else {
                    throw Refusal(fields: ["headers": "Expected header fields and their values."])
                }
                headers[name] = text
            }
            self = .answer(status: Int(status), headers: headers, body: body ?? "")
        default: throw Refusal(fields: ["do": "Expected hold, drop or answer."])
        }
    }
}
