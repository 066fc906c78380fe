import NotesContract
import NotesService
import TestSupport
import Testing
import Wire

/// The rows of attachments, which `orig` lacks.
extension Row {
    private static let path = "/api/notes/$U/attachments/a"
    private static let text = "abcdefgh"
    private static let digest = "Repr-Digest: " + AttachmentDigest(of: text.utf8).field
    private static let complete = ["Upload-Complete: ?1", digest]
    private static let begun = ["Upload-Complete: ?0", "Upload-Length: 8", digest]
    private static let append = ["Upload-Complete: ?1", "Content-Type: application/partial-upload"]
    private static let either = Status.each(orig: 404, compat: 201, strict: 201)

    /// Returns a row whose first request is a PUT of the complete attachment.
    private static func afterPut(_ title: String, _ check: @escaping Check) -> Row {
        Row("10", title, .note, "PUT", path, text, complete, either) { seen in
            if !seen.isOrig { try check(seen) }
        }
    }

    /// Returns a row whose first request is a PUT of the first three bytes.
    private static func afterBegin(_ title: String, _ check: @escaping Check) -> Row {
        Row("10", title, .note, "PUT", path, "abc", begun, either) { seen in
            if !seen.isOrig { try check(seen) }
        }
    }

    private static func own(_ seen: Seen, _ method: String, _ body: String = "", _ fields: [String] = []) throws
        -> HTTPReply
    {
        try seen.ask(method, "/api/notes/\(uuid)/attachments/a", body, fields)
    }

    static let attachments: [Row] = [
        Row(
            "10", "the empty list of attachments", .note, "GET", "/api/notes/$U/attachments/",
            .each(orig: 404, compat: 200, strict: 200)
        ) {
            #expect($0.isOrig || $0.reply.body == "[]")
        },
        Row(
            "10", "an attachment of another user's note", .bosNote, "PUT", path, text, complete,
            .each(orig: 404, compat: 404, strict: 404)),
        Row(
            "10", "an attachment of a deleted note", .deleted, "PUT", path, text, complete,
            .each(orig: 404, compat: 404, strict: 410)),
        Row(
            "10", "an upload without its fields", .note, "PUT", path, text,
            .each(orig: 404, compat: 400, strict: 400)),
        Row(
            "10", "an upload with another digest", .note, "PUT", path, "abcdefgi", complete,
            .each(orig: 404, compat: 422, strict: 422)),
        Row(
            "10", "an upload larger than the limit", .note, "PUT", path, "",
            ["Upload-Complete: ?0", "Upload-Length: 67108865", digest], .each(orig: 404, compat: 413, strict: 413)),
        afterPut("a complete attachment") { seen in
            #expect(seen.object["complete"] == .bool(true))
            let whole = try own(seen, "GET")
            #expect(whole.status == 200)
            #expect(whole.body == text)
            #expect(whole.header("Content-Length") == "8")
            #expect(whole.header("Content-Type") == "application/octet-stream")
            let list = try seen.ask("GET", "/api/notes/\(uuid)/attachments/", "", [])
            #expect(AttachmentEntry.list(json: Array(list.body.utf8))?.map(\.isComplete) == [true])
            let head = try own(seen, "HEAD")
            #expect(head.status == 200)
            #expect(head.header("Content-Length") == "8")
        },
        afterPut("ranges of an attachment") { seen in
            let part = try own(seen, "GET", "", ["Range: bytes=2-4"])
            #expect(part.status == 206)
            #expect(part.body == "cde")
            #expect(part.header("Content-Range") == "bytes 2-4/8")
            #expect(try own(seen, "GET", "", ["Range: bytes=8-"]).status == 416)
        },
        afterPut("conditions on an attachment") { seen in
            let tag = try #require(try own(seen, "GET").header("ETag"))
            #expect(try own(seen, "GET", "", ["If-None-Match: \(tag)"]).status == 304)
            #expect(try own(seen, "GET", "", ["If-Match: \"x\""]).status == 412)
            #expect(try own(seen, "PUT", "x", ["Upload-Complete: ?1", digest]).status == 409)
            #expect(try own(seen, "PUT", text, complete).status == 200)
            #expect(try own(seen, "DELETE").status == 204)
            #expect(try own(seen, "GET").status == 404)
        },
        afterBegin("an upload in two requests") { seen in
            let head = try own(seen, "HEAD")
            #expect(head.status == 204)
            #expect(head.header("Upload-Offset") == "3")
            #expect(try own(seen, "GET").status == 409)
            #expect(try own(seen, "PATCH", "de", ["Upload-Offset: 3"] + append.dropLast()).status == 415)
            let wrong = try own(seen, "PATCH", "cdefgh", ["Upload-Offset: 2"] + append)
            #expect(wrong.status == 409)
            #expect(wrong.header("Upload-Offset") == "3")
            let last = try own(seen, "PATCH", "defgh", ["Upload-Offset: 3"] + append)
            #expect(last.status == 204)
            #expect(last.header("Upload-Complete") == "?1")
            #expect(try own(seen, "GET").body == text)
        },
        Row(
            "10", "a name with a slash", .note, "GET", "/api/notes/$U/attachments/a%2Fb",
            .each(orig: 404, compat: 400, strict: 400)),
        Row(
            "10", "the options of an attachment", .note, "OPTIONS", path,
            .each(orig: 404, compat: 200, strict: 200)
        ) {
            #expect($0.isOrig || $0.reply.header("Accept-Patch") == "application/partial-upload")
        },
    ]
}
