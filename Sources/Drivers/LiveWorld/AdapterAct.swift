internal import Determinism
internal import Scenario
internal import Wire

/// An act as a program gets it: a JSON object in a line.
struct AdapterAct: Sendable {
    /// The name of the act (`do`).
    let name: String
    private let members: [(key: String, value: String)]

    /// Creates the act of an action.
    ///
    /// - Parameter identifier: Returns the identifier of a note; `nil` if it has none.
    init(_ action: Scenario.Action, identifier: (String) -> String?) throws(AdapterError) {
        var members: [(key: String, value: String)] = []
        func add(_ key: String, _ value: String?) {
            if let value { members.append((key, JSONText.string(value))) }
        }
        func addNote(_ row: String) {
            add("note", row)
            add("record", identifier(row))
        }
        switch action {
        case .create(let row, let title, let text), .edit(let row, let title, let text),
            .resolve(let row, let title, let text), .editStale(let row, let title, let text):
            addNote(row)
            add("title", title)
            add("text", text)
        case .choose(let row, let choice):
            addNote(row)
            add("with", choice.rawValue)
        case .delete(let row), .deleteStale(let row), .keep(let row), .pin(let row): addNote(row)
        case .open(let row): if let row { addNote(row) }
        case .send(let request):
            guard let target = request.target(identifier: identifier) else {
                throw AdapterError("the path names a note that does not exist yet")
            }
            add("method", request.method)
            add("path", target)
            members.append(
                ("headers", JSONText.object(request.headers.map { ($0.name, JSONText.string($0.value)) })))
            add("body", request.body)
        case .upgrade(let version): members.append(("version", "\(version)"))
        case .clock(let shift): members.append(("shift_ms", "\(shift.count / 1_000_000)"))
        case .call(let name, let arguments):
            add("name", name)
            if let note = action.subject, identifier(note) != nil { addNote(note) }
            members.append(("args", JSONText.object(arguments.map { ($0.name, JSONText.string($0.value)) })))
        case .sync, .kill, .start, .signOut, .signIn, .disk, .server: break
        }
        name = Self.name(of: action)
        self.members = members
    }

    private init(name: String, members: [(key: String, value: String)]) {
        self.name = name
        self.members = members
    }

    /// A sync, as a user requests it.
    static let sync = AdapterAct(name: "sync", members: [])

    /// A change of the device's network interface; a program need not answer it.
    static func interface(isUp: Bool) -> AdapterAct {
        AdapterAct(name: "interface", members: [("up", isUp ? "true" : "false")])
    }

    private static func name(of action: Scenario.Action) -> String {
        switch action {
        case .create: "create"
        case .edit, .editStale: "edit"
        case .delete, .deleteStale: "delete"
        case .resolve, .choose: "resolve"
        case .keep: "keep"
        case .pin: "pin"
        case .open: "open"
        case .sync: "sync"
        case .send: "send"
        case .kill: "kill"
        case .start: "start"
        case .upgrade: "upgrade"
        case .clock: "clock"
        case .call: "call"
        case .signOut, .signIn, .disk, .server: "\(action)"
        }
    }

    /// Returns the line.
    ///
    /// - Parameter id: The number of the act; `nil` if no answer is expected.
    func line(id: Int?) -> [UInt8] {
        var all: [(key: String, value: String)] = id.map { [("id", "\($0)")] } ?? []
        all.append(("do", JSONText.string(name)))
        return Array((JSONText.object(all + members) + "\n").utf8)
    }
}
