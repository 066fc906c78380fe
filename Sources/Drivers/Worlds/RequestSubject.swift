internal import Client
internal import NotesContract
internal import Wire

/// The note, or the record of an app, that a request concerns.
enum RequestSubject {
    /// Returns the identifier of the note: from the path, or from the body of a creation.
    ///
    /// - Parameter body: The body, or the first bytes of a long one.
    static func record(_ head: HTTPRequestHead, _ body: [UInt8]) -> [UInt8]? {
        let path = head.target.utf8.prefix { $0 != UInt8(ascii: "?") }
        if let segment = AppServices.recordSegment(ofPath: path) { return PercentEncoding.decode(segment) }
        let prefix = NotesHTTP.notesPath.utf8
        guard path.starts(with: prefix) else { return nil }
        let uuid = path.dropFirst(prefix.count).prefix { $0 != UInt8(ascii: "/") }
        if !uuid.isEmpty { return PercentEncoding.decode(uuid) }
        guard head.method == "POST" else { return nil }
        if case .text(let uuid)? = NoteFields(json: body)?.uuid { return Array(uuid.utf8) }
        // The sample of a long body ends before the end of the JSON.
        let start = Array("{\"uuid\":\"".utf8)
        guard body.starts(with: start) else { return nil }
        let value = body.dropFirst(start.count).prefix { $0 != UInt8(ascii: "\"") }
        return value.contains(UInt8(ascii: "\\")) ? nil : Array(value)
    }
}
