import Foundation
import NotesServer
import NotesService
import TestSupport
import Testing

/// The OpenAPI documents against running servers, by schemathesis (`scripts/setup --tests` installs it).
@Suite(.tags(.services), .serialized, .timeLimit(.minutes(10))) struct SchemaTests {
    /// The contracts are checked at once, because schemathesis waits for each response.
    @Test func everyResponseIsDocumented() async throws {
        let generated = try await withThrowingTaskGroup(of: Int.self) { group in
            for contract in APIContract.all { group.addTask { try await Self.check(contract) } }
            return try await group.reduce(0, +)
        }
        #expect(generated > 500)
    }

    /// Checks a server of a contract; returns the number of generated requests.
    private static func check(_ contract: APIContract) async throws -> Int {
        let service = NotesService(store: try NotesStore(path: nil, contract: contract), users: ["ada": "secret"])
        let server = try await NotesServer.start(service, host: "127.0.0.1", port: 0)
        // schemathesis writes its example database into the working directory.
        let folder = try TemporaryFolder()
        // schemathesis does not know the media type of an upload's PATCH.
        let files = [
            "schemathesis.toml": "hooks = \"hooks.py\"\n",
            "hooks.py": """
            import schemathesis
            schemathesis.serializer.alias("application/partial-upload", "application/octet-stream")

            """,
        ]
        for (name, text) in files {
            try text.write(to: URL(filePath: folder.path(name)), atomically: true, encoding: .utf8)
        }
        // The random requests of all contracts take three times as long; `SLOWLANE_SEEDS` adds them.
        let isComplete = contract == .compat || TestSettings.isSoak
        let phases = isComplete ? "examples,coverage,fuzzing,stateful" : "examples,coverage"
        let (status, text) = try await runPython(
            "schemathesis",
            [
                "run", "http://127.0.0.1:\(server.port)/openapi.json", "--auth", "ada:secret", "--seed", "1",
                "--max-examples", "\(randomSeeds(2).count)", "--phases", phases, "--no-color", "--checks",
                "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
                    + "response_schema_conformance,unsupported_method,allow_header_conformance",
            ], in: folder.path("."))
        await server.stop()
        #expect(status == 0, "\(contract): \(text.suffix(6000))")
        let count = text.firstMatch(of: #/([0-9]+) generated, ([0-9]+) passed/#).flatMap { Int($0.1) }
        return try #require(count, "\(contract): \(text.suffix(2000))")
    }
}
