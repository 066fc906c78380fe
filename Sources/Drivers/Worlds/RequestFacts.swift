public import Client
internal import Determinism
internal import NotesContract
public import Scenario
internal import Wire

/// What requests say, as history events.
public enum RequestFacts {
    /// Returns the event of what a request says; `nil` if the number of the request is not known.
    ///
    /// - Parameters:
    ///   - body: The body, or the first bytes of a long one.
    ///   - exchange: The number of the exchange in the run.
    static func event(
        _ head: HTTPRequestHead, _ body: [UInt8], exchange: Int, _ recorder: inout HistoryRecorder
    ) -> History.Event {
        .contents(
            exchange, contents(head.method, head.target, body, &recorder) { name in head.value(of: name) })
    }

    /// Returns the event of what the request of a writer says.
    public static func event(
        _ content: SyncRequestContent, user: String, exchange: Int, _ recorder: inout HistoryRecorder
    ) -> History.Event {
        var contents = contents(content.method, content.target, content.body, &recorder) { name in
            content.headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
        if contents.account == nil { contents.account = .user(user) }
        return .contents(exchange, contents)
    }

    private static func contents(
        _ method: String, _ target: String, _ body: [UInt8], _ recorder: inout HistoryRecorder,
        _ field: (String) -> String?
    ) -> RequestContents {
        var contents = RequestContents()
        contents.account = field("Authorization").flatMap { account($0, &recorder) }
        contents.isConditional = field("If-None-Match") != nil
        var base = field("If-Match").map(unquoted) ?? revision(in: target)
        if method == "GET" || method == "HEAD" { return contents }
        if !isNote(target) {
            contents.body = .other
        } else if !body.isEmpty {
            if let fields = NoteFields(json: body) {
                if case .text(let revision) = fields.revision { base = base ?? revision }
                contents.body = .note(title: digest(fields.title), text: digest(fields.text))
            } else {
                contents.body = .other
            }
        }
        contents.base = base.map { RequestContents.Revision($0) }
        return contents
    }

    private static func digest(_ field: NoteFields.Field) -> UInt64? {
        if case .text(let text) = field { RequestContents.digest(text) } else { nil }
    }

    /// Returns an entity tag without quotes.
    private static func unquoted(_ tag: String) -> String {
        let bytes = tag.utf8.drop { $0 != UInt8(ascii: "\"") }.dropFirst()
        return bytes.isEmpty ? tag : String(decoding: bytes.prefix { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
    }

    /// Returns the parameter `revision` of a target.
    private static func revision(in target: String) -> String? {
        let query = target.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst()
        let name = Array("revision=".utf8)
        for parameter in query.split(separator: UInt8(ascii: "&")) where parameter.starts(with: name) {
            return String(decoding: parameter.dropFirst(name.count), as: UTF8.self)
        }
        return nil
    }

    /// Whether a target is that of a note, or of the list of notes, and not of a part of a note.
    private static func isNote(_ target: String) -> Bool {
        let path = target.utf8.prefix { $0 != UInt8(ascii: "?") }
        let prefix = NotesHTTP.notesPath.utf8
        guard path.starts(with: prefix) else { return false }
        let rest = path.dropFirst(prefix.count).drop { $0 != UInt8(ascii: "/") }.dropFirst()
        return rest.isEmpty
    }

    /// Returns the account of credentials, without their secret.
    private static func account(
        _ credentials: String, _ recorder: inout HistoryRecorder
    ) -> RequestContents.Account? {
        let parts = credentials.utf8.split(separator: UInt8(ascii: " "), maxSplits: 1)
        guard parts.count == 2 else { return nil }
        switch String(Substring(parts[0])).lowercased() {
        case "basic":
            guard let bytes = Base64.decode(parts[1]) else { return nil }
            return .user(String(decoding: bytes.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self))
        case "bearer": return .token(recorder.token(Array(parts[1])))
        default: return nil
        }
    }
}

extension ClientPolicy {
    /// Creates the policy that Slowlane's client publishes.
    public init(_ policy: SyncPolicy) {
        self.init(
            firstDelay: policy.firstDelay, longestDelay: policy.longestDelay, poll: policy.poll,
            recoveryDelay: policy.recoverySpread, usesMeteredInterfaces: policy.interfaces == .any)
    }
}

extension Scenario {
    /// Returns the events with which a run begins: what the world records, and the policies that clients publish.
    public func openingEvents(_ world: WorldFacts) -> [History.Event] {
        [.world(world)]
            + devices.filter { $0.client == .reference }.map {
                .policy(device: $0.name, ClientPolicy(SyncPolicy(policy)))
            }
    }
}
