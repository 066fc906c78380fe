import Foundation
import TestSupport
import Testing

/// The client library from PyPI, as its users have it (`scripts/setup --tests` installs it).
@Suite(.timeLimit(.minutes(10))) struct PythonClientTests {
    /// The folder of this file.
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

    /// Other tests run beside it: what may be late by much here is exact when the script is run by itself.
    @Test func toxiproxyPythonDrivesEveryToxic() async throws {
        try await withServer { (call, _) async throws in
            let script = Self.folder.appending(path: "Python/drive_toxics.py").path()
            let (status, text) = try await runPython("python", [script, "\(call.port)", "30"])
            #expect(status == 0, "\(text)")
            #expect(text.split(separator: "\n").count { $0.hasPrefix("ok ") } == 16, "\(text)")
        }
    }
}
