internal import GRDB
internal import HTTPTypes
internal import JSON

/// `/api/notes/UUID/pin/`: whether its owner has pinned a note. Needs no revision and changes none: the last word counts.
extension NotesService {
    func handlePin(_ request: APIRequest, _ user: String, _ uuid: String) throws -> Response {
        if request.method == .put || request.method == .delete {
            return try write(request, user) { database in
                var note = try find(user, uuid, database)
                if note.isPinned != (request.method == .put) {
                    note.isPinned.toggle()
                    _ = try note.save(database, owner: user, at: now(), served: served())
                }
                return Response(.noContent)
            }
        }
        let note = try store.read { try find(user, uuid, $0) }
        return .json(.ok, JSONText.object([("pinned", note.isPinned ? "true" : "false")]))
    }
}
