internal import HTTPTypes
internal import NotesContract
internal import Wire

/// The representation of notes in requests and responses.
extension NotesService {
    /// Returns a note as JSON in the form of the contract.
    func json(of note: Note) -> String {
        guard contract.reading.echoesDates else { return note.json }
        var shown = note
        shown.date = NoteDate.brief(note.date)
        return shown.json
    }

    /// Returns the response to a successful write.
    ///
    /// - Parameter sentDate: The date of the request, if it had one.
    func writeResponse(_ status: HTTPResponse.Status, _ stored: StoredNote, sentDate: NoteDate.Parsed?) -> Response {
        var note = stored.note
        if contract.reading.echoesDates, let sentDate { note.date = sentDate.echo }
        var response = Response.json(status, json(of: note))
        guard contract.features.contains(.validators) else { return response }
        response[.eTag] = EntityTags.of(note.revision)
        if status == .created { response[.location] = NotesHTTP.path(of: note.uuid) }
        return response
    }

    /// Returns the Last-Modified date of a note; `nil` within the second of its last write, in which another write
    /// could have the same date.
    func lastModified(_ note: StoredNote) -> String? {
        let seconds = note.modified / 1000
        guard contract.features.contains(.validators), now() / 1000 > seconds else { return nil }
        return HTTPDate.text(unixTime: Int64(seconds))
    }

    /// Returns the stored form of a date field, and the date as sent.
    func date(
        _ field: NoteFields.Field, otherwise: String
    ) throws -> (stored: String, sent: NoteDate.Parsed?) {
        let allowsNoOffset = contract.reading.echoesDates
        switch field {
        case .missing: return (otherwise, nil)
        case .text(let text):
            guard let sent = NoteDate.parse(text), let stored = sent.stored(assumingBerlin: allowsNoOffset) else {
                throw HTTPProblem(fields: [
                    "date": allowsNoOffset
                        ? "Datetime has wrong format. Use YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]."
                        : "Expected a date and time with an offset, such as 2026-03-01T08:30:00Z."
                ])
            }
            return (stored, sent)
        case .null: throw HTTPProblem(fields: ["date": "This field is required."])
        case .wrongType: throw HTTPProblem(fields: ["date": "Expected a date and time."])
        }
    }
}

extension NoteFields.Field {
    /// Returns the text or `nil` for null; for a missing field, the given value.
    func value(_ name: String, otherwise: String?) throws -> String? {
        switch self {
        case .missing: otherwise
        case .null: nil
        case .text(let text): text
        case .wrongType: throw HTTPProblem(fields: [name: "Expected a text or null."])
        }
    }
}
