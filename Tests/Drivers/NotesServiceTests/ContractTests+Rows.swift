import Foundation
import NotesContract
import NotesService
import TestSupport
import Testing
import Wire

/// The rows, numbered by the section of the contract: 1 the note, 2 endpoints, 3 authentication and ownership, 4
/// revisions, 5 conditional requests, 6 other statuses, 10 differences between contracts.
extension Row {
    static let all = notes + endpoints + authentication + revisions + conditions + statuses + contracts + attachments

    private static let put = #"{"revision":"$R","title":"Bread","text":"one","date":"2026-03-02T08:00:00Z"}"#
    private static let form = "Content-Type: application/x-www-form-urlencoded"

    private static func hasError(_ text: String, key: String = "error") -> Check {
        { #expect($0.object[key] == .text(text), "\($0.reply.body)") }
    }

    private static func hasField(_ name: String) -> Check {
        { #expect($0.object[name] != nil, "\($0.reply.body)") }
    }

    // MARK: The note

    private static let notes: [Row] = [
        Row("1", "order of keys", .note, "GET", "/api/notes/$U/", 200) {
            let date = $0.isOrig ? "2026-03-01T08:30:00Z" : "2026-03-01T08:30:00.000Z"
            #expect(
                $0.reply.body
                    == #"{"uuid":"\#(uuid)","revision":"\#($0.before?.revision.description ?? "")","date":"\#(date)","#
                    + #""title":"Milk","text":"two"}"#)
        },
        Row(
            "1", "unknown keys are ignored", .nothing, "POST", "/api/notes/",
            #"{"uuid":"$U","owner":"bo","x":[1]}"#, 201
        ) {
            #expect($0.object.keys.sorted() == ["date", "revision", "text", "title", "uuid"])
        },
        Row("1", "defaults", .nothing, "POST", "/api/notes/", #"{"uuid":"$U"}"#, 201) {
            #expect($0.object["title"] == .null)
            #expect($0.object["text"] == .null)
            #expect($0.note?.revision.number == 1)
            #expect($0.note?.revision.suffix.count == 36)
        },
        Row(
            "1", "a uuid with any characters", .nothing, "POST", "/api/notes/", #"{"uuid":"Ünser Einkauf?"}"#,
            .each(orig: 201, compat: 400, strict: 400)
        ) {
            guard $0.isOrig else { return }
            let reply = try $0.ask("GET", "/api/notes/%C3%9Cnser%20Einkauf%3F/", "", [])
            #expect(reply.status == 200)
        },
        Row(
            "1", "the case of a uuid", .note, "GET", "/api/notes/ABCDEF00-0000-4000-8000-000000000001/",
            .each(orig: 404, compat: 200, strict: 200)),
        Row(
            "1", "the uuid in the URL wins", .note, "PUT", "/api/notes/$U/",
            #"{"uuid":"x","revision":"$R","title":"a","text":"b","date":"2026-03-01T08:30:00Z"}"#, 200
        ) {
            #expect($0.note?.uuid == uuid)
        },
        Row("1", "a missing date is the current time", .nothing, "POST", "/api/notes/", #"{"uuid":"$U"}"#, 201) {
            let year = try #require($0.object["date"]?.text).prefix(2)
            #expect(year == "20")
        },
        Row(
            "1", "long texts", .nothing, "POST", "/api/notes/",
            #"{"uuid":"$U","title":"\#(String(repeating: "t", count: 200_000))"}"#, 201),
    ]

    // MARK: Endpoints

    private static let endpoints: [Row] = [
        Row("2", "root", .nothing, "GET", "/api/", 200) {
            let base = try #require($0.object["notes"]?.text)
            #expect(base.hasPrefix("http://127.0.0.1:") && base.hasSuffix("/api/notes/"))
            #expect($0.object["notes-uuids"]?.text?.hasSuffix("/api/notes-uuids/") == true)
        },
        Row("2", "list", .note, "GET", "/api/notes/", 200) {
            #expect($0.reply.body.hasPrefix("[{") && $0.reply.body.hasSuffix("}]"))
            #expect($0.reply.body.contains("\"text\":\"two\""))
        },
        Row("2", "empty list", .nothing, "GET", "/api/notes/", 200) { #expect($0.reply.body == "[]") },
        Row("2", "the list ignores paging parameters", .two, "GET", "/api/notes/?page=2&page_size=1", 200) {
            #expect($0.reply.body.contains(uuid) && $0.reply.body.contains(other))
        },
        Row("2", "the order of the list", .two, "GET", "/api/notes/", 200) { seen in
            let first = try #require(seen.reply.body.range(of: uuid)?.lowerBound)
            let second = try #require(seen.reply.body.range(of: other)?.lowerBound)
            #expect((second < first) == seen.isOrig)
        },
        Row("2", "the order of the index", .two, "GET", "/api/notes-uuids/", 200) { seen in
            let first = try #require(seen.reply.body.range(of: uuid)?.lowerBound)
            let second = try #require(seen.reply.body.range(of: other)?.lowerBound)
            #expect((second < first) == seen.isOrig)
        },
        Row("2", "POST", .nothing, "POST", "/api/notes/", #"{"uuid":"$U","title":"a"}"#, 201) {
            #expect($0.note?.title == "a")
            #expect($0.reply.header("ETag") == ($0.isOrig ? nil : $0.note.map { "\"\($0.revision)\"" }))
            #expect($0.reply.header("Location") == ($0.isOrig ? nil : "/api/notes/\(uuid)/"))
        },
        Row("2", "GET", .note, "GET", "/api/notes/$U/", 200) {
            #expect($0.reply.header("ETag") == $0.before.map { "\"\($0.revision)\"" })
        },
        Row("2", "PUT", .note, "PUT", "/api/notes/$U/", put, 200) {
            #expect($0.note?.title == "Bread")
            #expect($0.note?.revision.number == 2)
            #expect($0.reply.header("ETag") == ($0.isOrig ? nil : $0.note.map { "\"\($0.revision)\"" }))
        },
        Row("2", "PATCH", .note, "PATCH", "/api/notes/$U/", #"{"revision":"$R","title":"Bread"}"#, 200) {
            #expect($0.note?.title == "Bread")
            #expect($0.note?.text == "two")
            #expect($0.note?.date.hasPrefix("2026-03-01T08:30:00") == true)
        },
        Row("2", "DELETE", .note, "DELETE", "/api/notes/$U/?revision=$R", 204) {
            #expect($0.reply.body.isEmpty)
            let reply = try $0.ask("GET", "/api/notes/", "", [])
            #expect(reply.body == "[]")
        },
        Row("2", "index", .note, "GET", "/api/notes-uuids/", 200) {
            #expect($0.reply.body == #"[{"uuid":"\#(uuid)","revision":"\#($0.before?.revision.description ?? "")"}]"#)
        },
        Row("2", "the index is read-only", .nothing, "POST", "/api/notes-uuids/", "{}", 405) {
            #expect($0.reply.header("Allow") == "GET, HEAD, OPTIONS")
        },
        Row("2", "the index has no detail URLs", .note, "GET", "/api/notes-uuids/$U/", 404),
        Row("2", "HEAD of a note", .note, "HEAD", "/api/notes/$U/", 200) {
            #expect($0.reply.header("ETag") == $0.before.map { "\"\($0.revision)\"" })
        },
        Row("2", "HEAD of the list", .note, "HEAD", "/api/notes/", 200),
        Row("2", "HEAD of the index", .note, "HEAD", "/api/notes-uuids/", 200),
        Row("2", "HEAD of the root", .nothing, "HEAD", "/api/", 200),
        Row("2", "OPTIONS of a note", .note, "OPTIONS", "/api/notes/$U/", 200) {
            #expect($0.reply.header("Allow") == "GET, HEAD, PUT, PATCH, DELETE, OPTIONS")
            #expect($0.object["parses"] != nil)
        },
        Row("2", "OPTIONS of the list", .nothing, "OPTIONS", "/api/notes/", 200),
        Row("2", "OPTIONS of the index", .nothing, "OPTIONS", "/api/notes-uuids/", 200),
        Row("2", "OPTIONS of the root", .nothing, "OPTIONS", "/api/", 200),
        Row("2", "the web page redirects to the login", .note, "GET", "/notes/", 302) {
            #expect($0.reply.header("Location") == "/accounts/login/?next=/notes/")
        },
        Row("2", "ETag of the list", .note, "GET", "/api/notes/", 200) {
            #expect(($0.reply.header("ETag") == nil) == $0.isOrig)
        },
        Row("2", "ETag of the index", .note, "GET", "/api/notes-uuids/", 200) {
            #expect(($0.reply.header("ETag") == nil) == $0.isOrig)
        },
        Row(
            "2", "If-None-Match on the list", .note, "GET", "/api/notes/", "",
            ["If-None-Match: *"], .each(orig: 200, compat: 304, strict: 304)),
    ]

    // MARK: Authentication

    private static let anonymous: Status = .each(orig: 403, compat: 403, strict: 401)

    private static let authentication: [Row] = [
        Row("3", "no credentials", .nothing, "GET", "/api/notes/", as: nil, anonymous) {
            #expect($0.object["detail"] == "Authentication credentials were not provided.")
            #expect(($0.reply.header("WWW-Authenticate") != nil) == ($0.contract == .strict))
        },
        Row("3", "a wrong password", .nothing, "GET", "/api/", as: "Basic YWRhOndyb25n", anonymous) {
            #expect($0.object["detail"] == "Invalid username/password")
        },
        Row("3", "POST without credentials", .nothing, "POST", "/api/notes/", "{}", as: nil, anonymous),
        Row("3", "index without credentials", .nothing, "GET", "/api/notes-uuids/", as: nil, anonymous),
        Row("3", "GET of a note without credentials", .note, "GET", "/api/notes/$U/", as: nil, anonymous),
        Row("3", "PUT without credentials", .note, "PUT", "/api/notes/$U/", put, as: nil, anonymous),
        Row("3", "DELETE without credentials", .note, "DELETE", "/api/notes/$U/?revision=$R", as: nil, anonymous),
        Row(
            "3", "authentication comes before the method: PUT of the list", .nothing, "PUT", "/api/notes/", "{}",
            as: nil, anonymous),
        Row(
            "3", "authentication comes before the method: DELETE of the list", .nothing, "DELETE", "/api/notes/",
            as: nil, anonymous),
        Row(
            "3", "another user's note: GET", .bosNote, "GET", "/api/notes/$U/", 404,
            hasError("Not found", key: "detail")),
        Row("3", "another user's note: PUT", .bosNote, "PUT", "/api/notes/$U/", put, 404),
        Row("3", "another user's note: PATCH", .bosNote, "PATCH", "/api/notes/$U/", put, 404),
        Row("3", "another user's note: DELETE", .bosNote, "DELETE", "/api/notes/$U/?revision=$R", 404),
        Row("3", "the list without another user's notes", .bosNote, "GET", "/api/notes/", 200) {
            #expect($0.reply.body == "[]")
        },
        Row("3", "the index without another user's notes", .bosNote, "GET", "/api/notes-uuids/", 200) {
            #expect($0.reply.body == "[]")
        },
        Row(
            "3", "the original's leak: If-None-Match", .bosNote, "GET", "/api/notes/$U/", "", ["If-None-Match: *"],
            .each(orig: 304, compat: 404, strict: 404)
        ) {
            #expect(($0.reply.header("ETag") != nil) == $0.isOrig)
        },
        Row(
            "3", "the original's leak: If-Match", .bosNote, "GET", "/api/notes/$U/", "", ["If-Match: \"x\""],
            .each(orig: 412, compat: 404, strict: 404)
        ) {
            #expect(($0.reply.header("ETag") != nil) == $0.isOrig)
        },
        Row(
            "3", "the original's leak: a uuid of another user", .bosNote, "POST", "/api/notes/", #"{"uuid":"$U"}"#,
            .each(orig: 400, compat: 201, strict: 201)),
    ]

    // MARK: Revisions

    private static let missing: Status = .each(orig: 400, compat: 400, strict: 428)
    private static let updateMissing = "You must specify a 'revision' in the request data"
    private static let deleteMissing = "You must specify a 'revision' query parameter"

    private static func begins(_ text: String) -> Check {
        { #expect($0.object["error"]?.text?.hasPrefix(text) == true, "\($0.reply.body)") }
    }

    private static let revisions: [Row] = [
        Row(
            "4", "PUT without changes", .note, "PUT", "/api/notes/$U/",
            #"{"revision":"$R","title":"Milk","text":"two","date":"2026-03-01T08:30:00Z"}"#, 200
        ) {
            #expect(($0.note?.revision == $0.before?.revision) == !$0.isOrig)
        },
        Row("4", "each write increments the number", .changed, "PUT", "/api/notes/$U/", put, 200) {
            #expect($0.note?.revision.number == 3)
            #expect($0.note?.revision.suffix != $0.before?.revision.suffix)
        },
        Row(
            "4", "a revision in a POST", .nothing, "POST", "/api/notes/", #"{"uuid":"$U","revision":"7-foo"}"#,
            .each(orig: 201, compat: 201, strict: 400)
        ) {
            #expect($0.note?.revision.number == ($0.isOrig ? 8 : $0.contract == .compat ? 1 : nil))
        },
        Row(
            "4", "an invalid revision in a POST", .nothing, "POST", "/api/notes/", #"{"uuid":"$U","revision":"junk"}"#,
            .each(orig: 400, compat: 201, strict: 400)),
        Row(
            "4", "a PUT's revision in the query", .note, "PUT", "/api/notes/$U/?revision=$R",
            #"{"title":"a","text":"b","date":"2026-03-01T08:30:00Z"}"#, missing),
        Row("4", "a DELETE's revision in the body", .note, "DELETE", "/api/notes/$U/", #"{"revision":"$R"}"#, missing),
        Row(
            "4", "a PUT's revision in If-Match", .note, "PUT", "/api/notes/$U/",
            #"{"title":"a","text":"b","date":"2026-03-01T08:30:00Z"}"#, ["If-Match: \"$R\""],
            .each(orig: 400, compat: 200, strict: 200)),
        Row(
            "4", "a DELETE's revision in If-Match", .note, "DELETE", "/api/notes/$U/", "", ["If-Match: \"$R\""],
            .each(orig: 400, compat: 204, strict: 204)),
        Row(
            "4", "a contradicting If-Match", .note, "PUT", "/api/notes/$U/", put, ["If-Match: \"9-x\""],
            .each(orig: 200, compat: 400, strict: 400)),
        Row(
            "4", "a contradicting If-Match on DELETE", .note, "DELETE", "/api/notes/$U/?revision=$R", "",
            ["If-Match: \"9-x\""], .each(orig: 204, compat: 400, strict: 400)),
        Row("4.2", "PUT never creates", .nothing, "PUT", "/api/notes/$U/", put, 404),
        Row("4.2", "404 comes before a malformed body", .nothing, "PUT", "/api/notes/$U/", "{", 404),
        Row("4.3", "a malformed body", .note, "PUT", "/api/notes/$U/", "{", 400) {
            #expect($0.object["detail"]?.text?.hasPrefix("JSON parse error - ") == true)
        },
        Row("4.3", "an unknown media type", .note, "PUT", "/api/notes/$U/", "a", ["Content-Type: text/plain"], 415),
        Row("4.4", "no revision", .note, "PUT", "/api/notes/$U/", "{}", missing, begins(updateMissing)),
        Row("4.4", "no body", .note, "PUT", "/api/notes/$U/", missing, begins(updateMissing)),
        Row(
            "4.4", "an empty revision", .note, "PATCH", "/api/notes/$U/", #"{"revision":""}"#, missing,
            begins(updateMissing)),
        Row("4.4", "a null revision", .note, "PUT", "/api/notes/$U/", #"{"revision":null}"#, missing),
        Row(
            "4.5", "another revision", .changed, "PUT", "/api/notes/$U/",
            #"{"revision":"1-x","title":"a","text":"b","date":"2026-03-01T08:30:00Z"}"#, 409
        ) {
            #expect($0.object["error"] == "Conflict, you are trying to update an old revision of this object")
            #expect(($0.object["current"] == nil) == $0.isOrig)
            #expect(($0.reply.header("ETag") == nil) == $0.isOrig)
            #expect($0.isOrig || $0.reply.body.contains("Bread"))
        },
        Row("4.5", "a number as revision", .note, "PUT", "/api/notes/$U/", #"{"revision":1}"#, 409),
        Row(
            "4.6", "409 comes before field errors", .note, "PUT", "/api/notes/$U/", #"{"revision":"9-x","date":"no"}"#,
            409
        ),
        Row(
            "4.6", "an invalid field", .note, "PUT", "/api/notes/$U/",
            #"{"revision":"$R","title":"a","text":"b","date":"no"}"#,
            400, hasField("date")),
        Row("4", "DELETE of a missing note", .nothing, "DELETE", "/api/notes/$U/?revision=1-x", 404),
        Row("4", "DELETE without a revision", .note, "DELETE", "/api/notes/$U/", missing, begins(deleteMissing)),
        Row("4", "DELETE with an empty revision", .note, "DELETE", "/api/notes/$U/?revision=", missing),
        Row("4", "DELETE of another revision", .changed, "DELETE", "/api/notes/$U/?revision=1-x", 409) {
            #expect($0.object["error"] == "Conflict, you are trying to delete an old revision of this object")
        },
        Row(
            "4", "repeated DELETE", .deleted, "DELETE", "/api/notes/$U/?revision=$R",
            .each(orig: 404, compat: 404, strict: 204)),
        Row(
            "4", "a PUT without a text", .note, "PUT", "/api/notes/$U/",
            #"{"revision":"$R","title":"Bread","date":"2026-03-01T08:30:00Z"}"#,
            .each(orig: 200, compat: 400, strict: 400)
        ) {
            #expect(!$0.isOrig || $0.note?.text == "two")
            #expect($0.isOrig || $0.object["text"] != nil)
        },
        Row(
            "4", "null clears a field", .note, "PUT", "/api/notes/$U/",
            #"{"revision":"$R","title":null,"text":null,"date":"2026-03-01T08:30:00Z"}"#, 200
        ) {
            #expect($0.object["title"] == .null)
            #expect($0.object["text"] == .null)
        },
        Row(
            "4", "a PUT without a date", .note, "PUT", "/api/notes/$U/",
            #"{"revision":"$R","title":"a","text":"b"}"#, .each(orig: 200, compat: 400, strict: 400)
        ) {
            if $0.isOrig { #expect($0.note?.date.hasPrefix("2026-03-01T08:30") == false) }
        },
        Row(
            "4", "a PATCH without a date keeps it", .note, "PATCH", "/api/notes/$U/", #"{"revision":"$R","text":"b"}"#,
            200
        ) {
            #expect($0.note?.date.hasPrefix("2026-03-01T08:30:00") == true)
        },
    ]

    // MARK: Conditional requests

    private static let conditions: [Row] = [
        Row("5", "the current tag", .note, "GET", "/api/notes/$U/", "", ["If-None-Match: \"$R\""], 304) {
            #expect($0.reply.header("ETag") == $0.before.map { "\"\($0.revision)\"" })
        },
        Row("5", "a tag without quotes", .note, "GET", "/api/notes/$U/", "", ["If-None-Match: $R"], 304),
        Row("5", "a weak tag", .note, "GET", "/api/notes/$U/", "", ["If-None-Match: W/\"$R\""], 304),
        Row("5", "a list of tags", .note, "GET", "/api/notes/$U/", "", ["If-None-Match: \"x\", \"$R\""], 304),
        Row("5", "any tag", .note, "GET", "/api/notes/$U/", "", ["If-None-Match: *"], 304),
        Row("5", "another tag", .note, "GET", "/api/notes/$U/", "", ["If-None-Match: \"x\""], 200) {
            #expect($0.note?.title == "Milk")
        },
        Row("5", "HEAD with the current tag", .note, "HEAD", "/api/notes/$U/", "", ["If-None-Match: \"$R\""], 304),
        Row("5", "If-Match on GET", .note, "GET", "/api/notes/$U/", "", ["If-Match: \"x\""], 412) {
            #expect($0.reply.body.isEmpty == $0.isOrig)
        },
        Row("5", "a matching If-Match on GET", .note, "GET", "/api/notes/$U/", "", ["If-Match: \"$R\""], 200),
        Row("5", "Vary", .note, "GET", "/api/notes/$U/", 200) {
            #expect($0.reply.header("Vary") == ($0.isOrig ? "Accept, Cookie" : "Accept, Authorization, Cookie"))
        },
        Row(
            "5", "HTML with the same ETag", .note, "GET", "/api/notes/$U/", "", ["Accept: text/html"],
            .each(orig: 200, compat: 406, strict: 406)
        ) {
            guard $0.isOrig else { return }
            #expect($0.reply.header("Content-Type") == "text/html; charset=utf-8")
            #expect($0.reply.header("ETag") == $0.before.map { "\"\($0.revision)\"" })
            #expect($0.reply.body.contains("&quot;Milk&quot;"))
        },
        Row("5", "the list as HTML", .note, "GET", "/api/notes/", "", ["Accept: text/html,*/*;q=0.8"], 200) {
            #expect($0.reply.body.hasPrefix("<") == $0.isOrig)
        },
        Row(
            "5", "a date with offset and fraction", .nothing, "POST", "/api/notes/",
            #"{"uuid":"$U","date":"2026-07-01T10:00:40.123456+02:00"}"#, 201
        ) {
            #expect($0.object["date"] == ($0.isOrig ? "2026-07-01T10:00:40.123+02:00" : "2026-07-01T08:00:40.123Z"))
            let after = try $0.after()["date"]
            #expect(after == "2026-07-01T08:00:40.123Z")
        },
        Row(
            "5", "a date without a zone", .nothing, "POST", "/api/notes/",
            #"{"uuid":"$U","date":"2026-07-01T10:00:00"}"#, .each(orig: 201, compat: 400, strict: 400)
        ) {
            guard $0.isOrig else { return }
            #expect($0.object["date"] == "2026-07-01T10:00:00")
            let after = try $0.after()["date"]
            #expect(after == "2026-07-01T08:00:00Z")
        },
        Row(
            "5", "a winter's date without a zone", .note, "PATCH", "/api/notes/$U/",
            #"{"revision":"$R","date":"2026-01-01T10:00:00.5"}"#, .each(orig: 200, compat: 400, strict: 400)
        ) {
            guard $0.isOrig else { return }
            #expect($0.object["date"] == "2026-01-01T10:00:00.500")
            let after = try $0.after()["date"]
            #expect(after == "2026-01-01T09:00:00.500Z")
        },
    ]

    // MARK: Other statuses

    private static let multipart =
        "--b\r\nContent-Disposition: form-data; name=\"uuid\"\r\n\r\n$U\r\n"
        + "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nMilk & \"more\"\r\n"
        + "--b\r\nContent-Disposition: form-data; name=\"text\"; filename=\"x\"\r\n\r\nfile\r\n--b--\r\n"

    private static let statuses: [Row] = [
        Row(
            "6", "an existing uuid", .note, "POST", "/api/notes/",
            #"{"uuid":"$U","title":"Milk","text":"two","date":"2026-03-01T08:30:00Z"}"#,
            .each(orig: 400, compat: 200, strict: 200)
        ) {
            if $0.isOrig { #expect($0.object["uuid"] == ["Document with this UUID already exists."]) }
        },
        Row("6", "an empty uuid", .nothing, "POST", "/api/notes/", #"{"uuid":""}"#, 400, hasField("uuid")),
        Row(
            "6", "a uuid of 256 characters", .nothing, "POST", "/api/notes/",
            #"{"uuid":"\#(String(repeating: "x", count: 256))"}"#,
            400, hasField("uuid")),
        Row(
            "6", "a uuid of 255 characters", .nothing, "POST", "/api/notes/",
            #"{"uuid":"\#(String(repeating: "x", count: 255))"}"#, .each(orig: 201, compat: 400, strict: 400)),
        Row(
            "6", "a date that is none", .nothing, "POST", "/api/notes/", #"{"uuid":"$U","date":"yesterday"}"#, 400,
            hasField("date")),
        Row(
            "6", "a plain date", .nothing, "POST", "/api/notes/", #"{"uuid":"$U","date":"2026-03-01"}"#, 400,
            hasField("date")),
        Row("6", "a null date", .nothing, "POST", "/api/notes/", #"{"uuid":"$U","date":null}"#, 400, hasField("date")),
        Row("6", "an empty body", .nothing, "POST", "/api/notes/", .each(orig: 201, compat: 201, strict: 400)) {
            if $0.contract != .strict { #expect($0.note?.uuid.count == 36) }
        },
        Row("6", "an array as a new note", .nothing, "POST", "/api/notes/", "[]", 400, hasField("non_field_errors")),
        Row("6", "an array as a note", .note, "PUT", "/api/notes/$U/", "[]", 400),
        Row("6", "malformed JSON", .nothing, "POST", "/api/notes/", "{\"a", 400) {
            #expect($0.object["detail"]?.text?.hasPrefix("JSON parse error - ") == true)
        },
        Row(
            "6", "an unknown media type", .nothing, "POST", "/api/notes/", "<a/>", ["Content-Type: application/xml"],
            415),
        Row("6", "an unsatisfiable Accept", .nothing, "GET", "/api/notes/", "", ["Accept: image/png"], 406),
        Row("6", "a form", .nothing, "POST", "/api/notes/", "uuid=$U&title=Milk+%26+more", [form], 201) {
            #expect($0.note?.title == "Milk & more")
        },
        Row("6", "a form that is not UTF-8", .nothing, "POST", "/api/notes/", "uuid=$U&title=%ff", [form], 400),
        Row(
            "6", "a form on PUT", .note, "PUT", "/api/notes/$U/",
            "revision=$R&title=a&text=b&date=2026-03-01T08:30:00Z", [form], 200),
        Row(
            "6", "a multipart form", .nothing, "POST", "/api/notes/", multipart,
            ["Content-Type: multipart/form-data; boundary=b"], 201
        ) {
            #expect($0.note?.title == "Milk & \"more\"")
            #expect($0.object["text"] == .null)
        },
        Row(
            "6", "a truncated multipart form", .nothing, "POST", "/api/notes/", String(multipart.dropLast(6)),
            ["Content-Type: multipart/form-data; boundary=b"], 400),
        Row(
            "6", "a slash in a uuid", .nothing, "POST", "/api/notes/", #"{"uuid":"a/b"}"#,
            .each(orig: 201, compat: 400, strict: 400)
        ) {
            for path in ["/api/notes/a/b/", "/api/notes/a%2Fb/"] {
                let reply = try $0.ask("GET", path, "", [])
                #expect(reply.status == 404, "\(path)")
            }
        },
        Row(
            "6", "the uuid of a deleted note", .deleted, "POST", "/api/notes/", #"{"uuid":"$U"}"#,
            .each(orig: 201, compat: 409, strict: 409)
        ) {
            #expect(!$0.isOrig || $0.note?.revision.number == 1)
        },
        Row("6", "a format suffix", .nothing, "GET", "/api/notes/.dummy", 404),
        Row("6", "an unknown path", .nothing, "GET", "/api/others/", 404),
        Row(
            "6", "an unsupported method", .nothing, "DELETE", "/api/notes/", 405,
            hasError("Method 'DELETE' not allowed.", key: "detail")),
        Row(
            "6", "a body that is too long", .nothing, "POST", "/api/notes/",
            String(repeating: " ", count: (1 << 20) + 1), 413),
    ]

    // MARK: Differences between contracts

    private static let key = "Idempotency-Key: 4a8e8f0c-0000-4000-8000-000000000001"
    private static let whole = #"{"title":"a","text":"b","date":"2026-03-01T08:30:00Z"}"#

    private static func slashless(_ method: String, _ body: String, _ status: Status) -> Row {
        Row("10", "\(method) without the slash", .note, method, "/api/notes/$U", body, status) {
            guard $0.reply.status == 301 else { return }
            #expect($0.reply.header("Location")?.hasSuffix("/api/notes/\(uuid)/") == true)
            #expect($0.reply.header("Location")?.hasPrefix("http://127.0.0.1") == true)
        }
    }

    private static let contracts: [Row] = [
        Row(
            "10", "a stale If-Match on PUT", .changed, "PUT", "/api/notes/$U/", whole, ["If-Match: \"1-x\""],
            .each(orig: 400, compat: 412, strict: 412)
        ) {
            #expect($0.isOrig || $0.object["current"] != nil)
        },
        Row(
            "10", "a weak If-Match", .note, "PUT", "/api/notes/$U/", whole, ["If-Match: W/\"$R\""],
            .each(orig: 400, compat: 412, strict: 412)),
        Row(
            "10", "a stale If-Match on DELETE", .changed, "DELETE", "/api/notes/$U/", "", ["If-Match: \"1-x\""],
            .each(orig: 400, compat: 412, strict: 412)),
        Row(
            "10", "an If-None-Match on PUT", .note, "PUT", "/api/notes/$U/", put, ["If-None-Match: *"],
            .each(orig: 200, compat: 412, strict: 412)),
        Row(
            "10", "a repeated POST with its key", .nothing, "POST", "/api/notes/", #"{"uuid":"$U","title":"a"}"#, [key],
            201
        ) {
            let again = try $0.ask("POST", "/api/notes/", #"{"uuid":"\#(uuid)","title":"a"}"#, [key])
            #expect(again.status == ($0.isOrig ? 400 : 200))
            if !$0.isOrig { #expect(again.body == $0.reply.body) }
        },
        Row(
            "10", "a key with another payload", .nothing, "POST", "/api/notes/", #"{"uuid":"$U","title":"a"}"#, [key],
            201
        ) {
            let other = try $0.ask("POST", "/api/notes/", #"{"uuid":"\#(uuid)","title":"b"}"#, [key])
            #expect(other.status == ($0.isOrig ? 400 : 422))
        },
        Row(
            "10", "a POST of an existing uuid with other content", .note, "POST", "/api/notes/",
            #"{"uuid":"$U","title":"other"}"#,
            .each(orig: 400, compat: 409, strict: 409)
        ) {
            #expect($0.isOrig || $0.object["current"]?.object?["title"] == "Milk")
        },
        Row("10", "a repeated PUT with its key", .note, "PUT", "/api/notes/$U/", put, [key], 200) { seen in
            let body = put.replacing("$R", with: seen.before?.revision.description ?? "")
            let again = try seen.ask("PUT", "/api/notes/\(uuid)/", body, [key])
            #expect(again.status == (seen.isOrig ? 409 : 200))
            #expect(seen.isOrig || again.body == seen.reply.body)
        },
        Row("10", "a repeated DELETE with its key", .note, "DELETE", "/api/notes/$U/?revision=$R", "", [key], 204) {
            seen in
            let path = "/api/notes/\(uuid)/?revision=\(seen.before?.revision.description ?? "")"
            let reply = try seen.ask("DELETE", path, "", [key])
            #expect(reply.status == (seen.isOrig ? 404 : 204))
        },
        Row("10", "a key of another request", .note, "PUT", "/api/notes/$U/", put, [key], 200) {
            let other = try $0.ask("PATCH", "/api/notes/\(uuid)/", "{}", [key])
            #expect(other.status == ($0.isOrig ? 400 : 422))
        },
        Row("10", "GET of a tombstone", .deleted, "GET", "/api/notes/$U/", .each(orig: 404, compat: 404, strict: 410)),
        Row(
            "10", "PUT of a tombstone", .deleted, "PUT", "/api/notes/$U/", put,
            .each(orig: 404, compat: 404, strict: 410)),
        Row(
            "10", "PATCH of a tombstone", .deleted, "PATCH", "/api/notes/$U/", put,
            .each(orig: 404, compat: 404, strict: 410)),
        Row(
            "10", "POST of a tombstone's uuid", .deleted, "POST", "/api/notes/", #"{"uuid":"$U","title":"Milk"}"#,
            .each(orig: 201, compat: 409, strict: 409)
        ) {
            #expect($0.isOrig || $0.object["current"]?.object?["deleted"] == true)
        },
        Row("10", "the index after a deletion", .deleted, "GET", "/api/notes-uuids/", 200) {
            #expect(($0.reply.body == "[]") == $0.isOrig)
            #expect($0.isOrig || $0.reply.body.contains("\"revision\":\"2-"))
        },
        slashless("GET", "", .each(orig: 301, compat: 301, strict: 404)),
        slashless("HEAD", "", .each(orig: 301, compat: 301, strict: 404)),
        slashless("PUT", put, .each(orig: 301, compat: 200, strict: 404)),
        slashless("PATCH", put, .each(orig: 301, compat: 200, strict: 404)),
        Row(
            "10", "DELETE without the slash", .note, "DELETE", "/api/notes/$U?revision=$R",
            .each(orig: 301, compat: 204, strict: 404)),
        Row(
            "10", "POST without the slash", .nothing, "POST", "/api/notes", #"{"uuid":"$U"}"#,
            .each(orig: 301, compat: 201, strict: 404)),
        Row(
            "10", "the redirect comes before authentication", .nothing, "GET", "/api/notes?a=b", as: nil,
            .each(orig: 301, compat: 301, strict: 404)
        ) {
            if $0.contract != .strict { #expect($0.reply.header("Location")?.hasSuffix("/api/notes/?a=b") == true) }
        },
        Row(
            "10", "a POST without a uuid", .nothing, "POST", "/api/notes/", #"{"title":"a"}"#,
            .each(orig: 201, compat: 201, strict: 400),
            { seen in
                if seen.contract == .strict { #expect(seen.object["uuid"] != nil) }
            }),
        Row(
            "10", "a POST without a uuid but with a key", .nothing, "POST", "/api/notes/", #"{"title":"a"}"#, [key], 201
        ) {
            let again = try $0.ask("POST", "/api/notes/", #"{"title":"a"}"#, [key])
            #expect(again.status == ($0.isOrig ? 201 : 200))
            #expect((again.body == $0.reply.body) == !$0.isOrig)
        },
        Row(
            "10", "an old cursor", .note, "GET", "/api/notes-uuids/?since=other.1.0",
            .each(orig: 200, compat: 410, strict: 410)),
        Row("10", "tokens", .nothing, "POST", "/api/tokens/", .each(orig: 404, compat: 201, strict: 201)) {
            guard !$0.isOrig else { return }
            let bearer = "Authorization: Bearer \($0.object["access_token"]?.text ?? "")"
            let read = try $0.ask("GET", "/api/notes/", "", [bearer])
            #expect(read.status == 200)
            let more = try $0.ask("POST", "/api/tokens/", "", [bearer])
            #expect(more.status == 403)
        },
        Row("10", "a pin", .note, "PUT", "/api/notes/$U/pin/", .each(orig: 404, compat: 204, strict: 204)),
    ]
}
