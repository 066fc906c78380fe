internal import GRDB
internal import HTTPTypes
internal import JSON

/// `/health`: whether notes can be written, for whoever restarts servers or sends them requests. Needs no user.
extension NotesService {
    func handleHealth(_ request: APIRequest) throws -> Response {
        try request.allow([.get, .head])
        if let bytes = health.probe(at: monotonicNow()) {
            // A refusal is recorded where the write fails.
            _ = mapErrors {
                try change(bytes: bytes) { database in
                    try database.execute(
                        sql: """
                            INSERT INTO setting VALUES ('probe', hex(randomblob(?)))
                                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                            """, arguments: [bytes / 2])
                }
                // Its pages are free for notes.
                try change { try $0.execute(sql: "UPDATE setting SET value = '' WHERE name = 'probe'") }
                return Response(.ok)
            }
        }
        let problem = health.problem
        var response = Response.json(
            problem == nil ? .ok : .serviceUnavailable,
            JSONText.object(
                [("status", JSONText.string(problem == nil ? "ok" : "unhealthy"))]
                    + (problem.map { [("detail", JSONText.string($0.summary))] } ?? [])))
        response[.cacheControl] = "no-store"
        return response
    }
}
