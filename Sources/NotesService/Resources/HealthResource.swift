internal import GRDB
internal import HTTPTypes
internal import JSON

/// `/health`: whether notes can be written, for whoever restarts servers or sends them requests. Needs no user.
extension NotesService {
    func answerHealth(_ call: Call) throws -> Answer {
        try call.allow([.get, .head])
        if let bytes = health.probe(at: monotonicNow()) {
            // A refusal is recorded where the write fails.
            _ = attempt {
                try change(bytes: bytes) { database in
                    try database.execute(
                        sql: """
                            INSERT INTO setting VALUES ('probe', hex(randomblob(?)))
                                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                            """, arguments: [bytes / 2])
                }
                // Its pages are free for notes.
                try change { try $0.execute(sql: "UPDATE setting SET value = '' WHERE name = 'probe'") }
                return Answer(.ok)
            }
        }
        let problem = health.problem
        var answer = Answer.json(
            problem == nil ? .ok : .serviceUnavailable,
            JSONText.object(
                [("status", JSONText.string(problem == nil ? "ok" : "unhealthy"))]
                    + (problem.map { [("detail", JSONText.string($0.summary))] } ?? [])))
        answer[.cacheControl] = "no-store"
        return answer
    }
}
