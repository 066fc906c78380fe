internal import HTTPTypes
internal import JSON
internal import NotesContract

/// `/api/`, and what is the same everywhere.
extension NotesService {
    func answerRoot(_ call: Call) -> Answer {
        .json(
            .ok,
            JSONText.object([
                ("notes", JSONText.string(url(NotesHTTP.notesPath, call))),
                ("notes-uuids", JSONText.string(url(NotesHTTP.indexPath, call))),
            ]))
    }

    /// What can be done with a resource.
    func options(_ call: Call, _ methods: [HTTPRequest.Method]) -> Answer {
        func list(_ texts: [String]) -> String { JSONText.array(texts.map { JSONText.string($0) }) }
        let name =
            switch call.resource {
            case .notes: "Notes"
            case .index: "Notes' revisions"
            case .note: "Note"
            case .pin: "Pin of a note"
            case .tokens: "Tokens"
            default: "Api Root"
            }
        var answer = Answer.json(
            .ok,
            JSONText.object([
                ("name", JSONText.string(name)), ("description", JSONText.string("")),
                (
                    "renders",
                    list(dialect.reading.hasBrowsableHTML ? ["application/json", "text/html"] : ["application/json"])
                ),
                ("parses", list(["application/json", "application/x-www-form-urlencoded", "multipart/form-data"])),
            ]))
        answer[.allow] = methods.map(\.rawValue).joined(separator: ", ")
        return answer
    }

    /// JSON as a browser shows it.
    func browsable(_ answer: Answer) -> Answer {
        var answer = answer
        let (head, tail) = HTML.page(title: "Notes API", head: "<pre>", tail: "</pre>")
        switch answer.body {
        case .text(""), .length: break
        case .text(let text): answer.body = .text(head + HTML.escaped(text) + tail)
        case .pages(let pages): answer.body = .pages(pages.map(head: head, tail: tail, HTML.escaped))
        }
        HTML.mark(&answer)
        return answer
    }
}
