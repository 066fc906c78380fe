import Foundation
import TestSupport

/// The server of the tutorials, which the tests of this target share. It ends with this process.
enum OrdersServer {
    private static let server = Result {
        let program = """
            import os, runpy, sys, threading
            threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
            runpy.run_path(sys.argv.pop(1), run_name="__main__")
            """
        let path = Repository.root.appending(path: "Examples/orders/server.py").path()
        return try ChildProcess("python3", ["-c", program, path, "0"])
    }

    private static let line = Task {
        let server = try Self.server.get()
        return try await blocking { String(decoding: server.output.availableData, as: UTF8.self) }
    }

    /// The server's address.
    static var address: String {
        get async throws {
            try await line.value.firstMatch(of: /listening on ([0-9.:]+)/).map { String($0.1) } ?? ""
        }
    }
}
