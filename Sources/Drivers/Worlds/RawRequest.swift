public import Client
public import Scenario

/// Requests that a scenario gives in full.
public enum RawRequest {
    /// The header fields that the connection determines.
    private static let framingFields: Set<String> = [
        "connection", "content-length", "expect", "host", "transfer-encoding", "upgrade",
    ]

    /// Returns a request of a device or writer with the identifiers of its notes, and their revisions as the device or
    /// writer received them last.
    public static func content(
        of request: Scenario.RawRequest, _ recorder: HistoryRecorder, from actor: String
    ) throws(ActionError) -> SyncRequestContent {
        let target = request.target { row in recorder.record(of: row).map { String(decoding: $0, as: UTF8.self) } }
        guard let target else { throw ActionError("the path names a note that does not exist yet") }
        if let field = request.headers.first(where: { framingFields.contains($0.name.lowercased()) }) {
            throw ActionError("the header field '\(field.name)' cannot be given: the connection determines it")
        }
        let headers = request.headers { row in recorder.revision(of: row, receivedBy: actor) }
        guard let headers else { throw ActionError("\(actor) has received no revision of a note in a header field") }
        let body = request.body { row in recorder.record(of: row).map { String(decoding: $0, as: UTF8.self) } }
        return SyncRequestContent(
            method: request.method, target: target, headers: headers.map { ($0.name, $0.value) },
            body: Array(body.utf8))
    }

    /// Returns the header fields of a request on a connection of its own. Those of the request go before the others.
    public static func fields(
        of content: SyncRequestContent, host: String, authorization: String
    ) -> [(name: String, value: String)] {
        var fields = [
            (name: "Host", value: host), (name: "Connection", value: "close"),
            (name: "Authorization", value: authorization), (name: "Accept", value: "application/json"),
        ]
        fields.removeAll { field in content.headers.contains { $0.name.lowercased() == field.name.lowercased() } }
        return fields + content.headers + [(name: "Content-Length", value: "\(content.body.count)")]
    }
}
