import Foundation
import NotesServer
import NotesService
import TestSupport
import Testing

/// The documents against the running server, by schemathesis (`scripts/setup --tests` installs it).
@Suite(.serialized, .timeLimit(.minutes(10))) struct SchemaTests {
    @Test(arguments: APIContract.all) func nothingIsAnsweredThatIsNotDocumented(contract: APIContract) async throws {
        let service = NotesService(
            store: try NotesStore(path: nil, contract: contract), users: ["ada": "secret"])
        let server = try await NotesServer.start(service, host: "127.0.0.1", port: 0)
        let folder = try TemporaryFolder()
        // It writes down what it has learnt, where it is.
        let (status, text) = try await runPython(
            "schemathesis",
            [
                "run", "http://127.0.0.1:\(server.port)/openapi.json", "--auth", "ada:secret", "--seed", "1",
                "--max-examples", "20", "--no-color", "--checks",
                "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
                    + "response_schema_conformance,unsupported_method,allow_header_conformance",
            ], in: folder.path("."))
        await server.stop()
        #expect(status == 0, "\(text.suffix(6000))")
        let count = text.firstMatch(of: #/([0-9]+) generated, ([0-9]+) passed/#)
        #expect(count.flatMap { Int($0.1) } ?? 0 > 500, "\(text.suffix(2000))")
    }
}
