internal import Scenario
internal import Wire

/// A line that a program has printed for the runner.
enum AdapterLine: Hashable, Sendable {
    /// The answer to an act; with the identifier of the record that the act has created, if the program gives it.
    case answer(id: Int, record: String?)
    /// The answer to an act that failed.
    case refusal(id: Int, error: String)
    /// What the program shows.
    case view(AdapterView)
    /// Whether the program has nothing to send or fetch.
    case settled(Bool)
    /// The program accepts acts.
    case ready

    /// The maximum length of an identifier in bytes.
    static let identifierMax = 255
    /// The length to which texts of errors are shortened, in characters.
    private static let errorMax = 500

    /// Parses a line without its end.
    init(_ bytes: [UInt8]) throws(AdapterError) {
        guard let value = JSONText.parse(bytes), case .object(let members) = value else {
            throw AdapterError("not a JSON object in UTF-8; debug output belongs on standard error")
        }
        let keys = ["id", "view", "settled", "ready"].filter { members[$0] != nil }
        guard keys.count == 1, let key = keys.first, let content = members[key] else {
            throw AdapterError("expected one of 'id', 'view', 'settled' and 'ready'")
        }
        switch key {
        case "id": self = try Self.answer(content, members)
        case "view": self = .view(try AdapterView(content))
        case "settled":
            guard case .bool(let isSettled) = content else { throw AdapterError("'settled' must be true or false") }
            self = .settled(isSettled)
        default:
            guard content == .bool(true) else { throw AdapterError("'ready' must be true") }
            self = .ready
        }
    }

    private static func answer(_ id: JSONValue, _ members: JSONObject) throws(AdapterError) -> AdapterLine {
        guard case .integer(let number) = id, let number = Int(exactly: number) else {
            throw AdapterError("'id' must be the number of an act")
        }
        guard case .bool(let isDone)? = members["ok"] else { throw AdapterError("'ok' must be true or false") }
        if !isDone {
            return .refusal(id: number, error: String((members["error"]?.text ?? "no reason given").prefix(errorMax)))
        }
        return .answer(id: number, record: try members["record"].map(identifier))
    }

    static func identifier(_ value: JSONValue) throws(AdapterError) -> String {
        guard let text = value.text, !text.isEmpty, text.utf8.count <= identifierMax else {
            throw AdapterError("an identifier must be a text of 1 to \(identifierMax) bytes")
        }
        return text
    }
}

/// What is wrong with a line of a program.
struct AdapterError: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// What a program shows its user.
struct AdapterView: Hashable, Sendable {
    /// A note.
    struct Row: Hashable, Sendable {
        /// The identifier of the record; `nil` if the note has none yet.
        let id: String?
        /// The note's name in the scenario, if the program knows it.
        let note: String?
        let title: String?
        let text: String?
        let icon: History.Icon
        let isDeleted: Bool
        /// Every text that the program has stored for the note.
        let kept: [String]
        /// The opacity and whether the note is struck through; `nil` if the program does not tell.
        var opacity: String?
        var isStruck: Bool?
    }

    let rows: [Row]
    let outbox: Int
    /// What the program shows beside the notes.
    let screen: History.ScreenState

    /// The maximum number of notes, of stored texts of a note, and of controls.
    static let rowsMax = 10_000
    static let keptMax = 100
    static let controlsMax = 100

    init(rows: [Row], outbox: Int, screen: History.ScreenState = History.ScreenState()) {
        self.rows = rows
        self.outbox = outbox
        self.screen = screen
    }

    init(_ value: JSONValue) throws(AdapterError) {
        guard case .array(let rows) = value["rows"] else { throw AdapterError("'view' must have a list 'rows'") }
        guard rows.count <= Self.rowsMax else { throw AdapterError("'view' has more than \(Self.rowsMax) rows") }
        guard case .integer(let outbox) = value["outbox"], let outbox = Int(exactly: outbox), outbox >= 0 else {
            throw AdapterError("'view' must have 'outbox', the number of changes to be sent")
        }
        var found: [Row] = []
        for row in rows { found.append(try Self.row(row)) }
        self.init(rows: found, outbox: outbox, screen: try Self.screen(value))
    }

    /// Reads an opacity as it is written in scenario files.
    private static func opacity(_ value: JSONValue?) throws(AdapterError) -> String? {
        guard let value else { return nil }
        guard let number = value.number, (0...1).contains(number) else {
            throw AdapterError("'opacity' must be a number from 0 to 1")
        }
        let text = "\(number)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    private static func strike(_ value: JSONValue?) throws(AdapterError) -> Bool? {
        guard let value else { return nil }
        guard case .bool(let truth) = value else { throw AdapterError("'strike' must be true or false") }
        return truth
    }

    /// Reads what is shown beside the notes. `null` is the absence of a dialog or message; a missing key is not known.
    private static func screen(_ value: JSONValue) throws(AdapterError) -> History.ScreenState {
        let members = value.object ?? [:]
        func name(_ key: String, isOptional: Bool = true) throws(AdapterError) -> String? {
            guard let member = members[key] else { return nil }
            if member == .null, isOptional { return "none" }
            guard let text = member.text, !text.isEmpty else { throw AdapterError("'\(key)' must be a name") }
            return text
        }
        var controls: [String]?
        if let member = members["controls"] {
            guard case .array(let values) = member, values.count <= controlsMax else {
                throw AdapterError("'controls' must be a list of at most \(controlsMax) names")
            }
            let names = values.compactMap(\.text)
            guard names.count == values.count else { throw AdapterError("'controls' must be a list of names") }
            controls = names
        }
        return History.ScreenState(
            name: try name("screen", isOptional: false), controls: controls, dialog: try name("dialog"),
            toast: try name("toast"))
    }

    private static func row(_ value: JSONValue) throws(AdapterError) -> Row {
        guard let members = value.object else { throw AdapterError("a row must be an object") }
        func text(_ key: String) throws(AdapterError) -> String? {
            guard let text = members[key].optionalText else { throw AdapterError("'\(key)' must be a text or null") }
            return text
        }
        func identifier(_ key: String) throws(AdapterError) -> String? {
            guard let value = members[key], value != .null else { return nil }
            return try AdapterLine.identifier(value)
        }
        let (id, note) = (try identifier("id"), try identifier("note"))
        if id == nil && note == nil { throw AdapterError("a row must have 'id' or 'note'") }
        guard let icon = History.Icon(rawValue: try text("icon") ?? History.Icon.plain.rawValue) else {
            let names = History.Icon.allCases.map(\.rawValue).joined(separator: ", ")
            throw AdapterError("'icon' must be one of \(names)")
        }
        var isDeleted = false
        if let value = members["deleted"] {
            guard case .bool(let truth) = value else { throw AdapterError("'deleted' must be true or false") }
            isDeleted = truth
        }
        let body = try text("text")
        var kept = body.map { [$0] } ?? []
        if let value = members["kept"] {
            guard case .array(let values) = value, values.count <= keptMax else {
                throw AdapterError("'kept' must be a list of at most \(keptMax) texts")
            }
            kept = values.compactMap(\.text)
            guard kept.count == values.count else { throw AdapterError("'kept' must be a list of texts") }
        }
        return Row(
            id: id, note: note, title: try text("title"), text: body, icon: icon, isDeleted: isDeleted, kept: kept,
            opacity: try opacity(members["opacity"]), isStruck: try strike(members["strike"]))
    }
}
