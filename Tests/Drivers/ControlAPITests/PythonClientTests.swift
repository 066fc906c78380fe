import Foundation
import TestSupport
import Testing

/// Toxiproxy's client library from PyPI (`scripts/setup --tests` installs it).
@Suite(.tags(.servers), .timeLimit(.minutes(10))) struct PythonClientTests {
    /// The folder of this file.
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

    /// Effects may be late here, as on a busy machine. Run the script by itself to test how late they are. Longer times show
    /// smaller errors.
    @Test func everyToxicWorksWithToxiproxyPython() async throws {
        try await withServer { (call, _) async throws in
            let script = Self.folder.appending(path: "Python/drive_toxics.py").path()
            let times = TestSettings.work(1, soak: 10)
            let (status, text) = try await runPython("python", [script, "\(call.port)", "30", "\(times)"])
            #expect(status == 0, "\(text)")
            #expect(text.split(separator: "\n").count { $0.hasPrefix("ok ") } == 16, "\(text)")
        }
    }

    @Test func aLostResponseTakesFiveLinesOfPython() async throws {
        try await withServer { (call, _) async throws in
            let script = Self.folder.appending(path: "Python/lose_third_post.py").path()
            let (status, text) = try await runPython("python", [script, "\(call.port)"])
            #expect(status == 0, "\(text)")
            #expect(text.split(separator: "\n").count { $0.hasPrefix("ok ") } == 8, "\(text)")
        }
    }
}
