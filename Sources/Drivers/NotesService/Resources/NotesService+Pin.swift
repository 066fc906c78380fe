internal import HTTPTypes
internal import Wire

/// `/api/notes/UUID/pin/`: whether a note is pinned. A pin needs no base revision and changes none; the last write
/// wins.
extension NotesService {
    func handlePin(_ request: APIRequest, _ user: String, _ uuid: String) throws -> Response {
        if request.method == .put || request.method == .delete {
            return try write(request, user) { transaction in
                var note = try find(user, uuid, transaction)
                if note.isPinned != (request.method == .put) {
                    note.isPinned.toggle()
                    _ = try note.save(transaction, owner: user, at: now(), uptime: uptimeNow())
                }
                return Response(.noContent)
            }
        }
        let note = try store.read { try find(user, uuid, $0) }
        return .json(.ok, JSONText.object([("pinned", note.isPinned ? "true" : "false")]))
    }
}
