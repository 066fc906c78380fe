internal import GRDB
internal import HTTPTypes
internal import Wire

/// `/health`: whether notes can be written, for process supervisors and load balancers. It needs no authentication.
extension NotesService {
    func handleHealth(_ request: APIRequest) throws -> Response {
        try request.requireMethod([.get, .head])
        if let bytes = health.takeProbe(at: monotonicNow()) {
            // An error of the test write is recorded like that of any write.
            _ = mapErrors {
                try change(bytes: bytes) { transaction in
                    guard case .sqlite(let database) = transaction else { return }
                    try database.execute(
                        sql: """
                            INSERT INTO setting VALUES ('probe', hex(randomblob(?)))
                                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                            """, arguments: [bytes / 2])
                }
                // Frees the pages for notes.
                try change { transaction in
                    guard case .sqlite(let database) = transaction else { return }
                    try database.execute(sql: "UPDATE setting SET value = '' WHERE name = 'probe'")
                }
                return Response(.ok)
            }
        }
        let error = health.error
        var response = Response.json(
            error == nil ? .ok : .serviceUnavailable,
            JSONText.object(
                [("status", JSONText.string(error == nil ? "ok" : "unhealthy"))]
                    + (error.map { [("detail", JSONText.string($0.summary))] } ?? [])))
        response[.cacheControl] = "no-store"
        return response
    }
}
