import NotesServer
import NotesService

/// A notes server that the tests of this target share.
enum Upstream {
    private static let server = Task {
        let service = NotesService(
            store: try NotesStore(path: nil, contract: .compat), users: ["ada": "secret"])
        return try await NotesServer.start(service, host: "127.0.0.1", port: 0)
    }

    /// The server's address.
    static var address: String {
        get async throws { "127.0.0.1:\(try await server.value.port)" }
    }
}
