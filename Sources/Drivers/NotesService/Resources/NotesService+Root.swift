internal import HTTPTypes
internal import NotesContract
internal import Wire

/// `/api/`, and the parts that all API resources share.
extension NotesService {
    func handleRoot(_ request: APIRequest) -> Response {
        .json(
            .ok,
            JSONText.object([
                ("notes", JSONText.string(url(NotesHTTP.notesPath, request))),
                ("notes-uuids", JSONText.string(url(NotesHTTP.indexPath, request))),
            ]))
    }

    /// Returns the response to OPTIONS.
    func options(_ request: APIRequest, _ methods: [HTTPRequest.Method]) -> Response {
        func list(_ texts: [String]) -> String { JSONText.array(texts.map { JSONText.string($0) }) }
        let name =
            switch request.resource {
            case .notes: "Notes"
            case .index: "Notes' revisions"
            case .note: "Note"
            case .pin: "Pin of a note"
            case .attachments: "Attachments of a note"
            case .attachment: "Attachment of a note"
            case .tokens: "Tokens"
            default: "Api Root"
            }
        var renders = contract.reading.servesHTML ? ["application/json", "text/html"] : ["application/json"]
        var parses = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"]
        let isAttachment = if case .attachment = request.resource { true } else { false }
        if isAttachment {
            renders = [NotesService.attachmentType]
            parses = [NotesService.attachmentType, AttachmentHTTP.partialUploadType]
        }
        var response = Response.json(
            .ok,
            JSONText.object([
                ("name", JSONText.string(name)), ("description", JSONText.string("")), ("renders", list(renders)),
                ("parses", list(parses)),
            ]))
        response[.allow] = methods.map(\.rawValue).joined(separator: ", ")
        if isAttachment {
            response[.acceptPatch] = AttachmentHTTP.partialUploadType
            response[.uploadLimit] = NotesService.uploadLimit
        }
        return response
    }

    /// Returns a JSON response in a web page.
    func browsable(_ response: Response) -> Response {
        var response = response
        let (head, tail) = HTML.page(title: "Notes API", head: "<pre>", tail: "</pre>")
        switch response.body {
        case .text(""), .omitted, .bytes: break
        case .text(let text): response.body = .text(head + HTML.escaped(text) + tail)
        case .pages(let pages): response.body = .pages(pages.map(head: head, tail: tail, HTML.escaped))
        }
        HTML.setHeaderFields(of: &response)
        return response
    }
}
