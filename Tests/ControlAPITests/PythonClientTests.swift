import Foundation
import TestSupport
import Testing

/// The client library from PyPI, as its users have it (`scripts/setup --tests` installs it).
@Suite(.timeLimit(.minutes(2))) struct PythonClientTests {
    /// The folder of this file.
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

    private static var python: URL {
        folder.deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build/python/bin/python")
    }

    /// Other tests run beside it: what may be late by much here is exact when the script is run by itself.
    @Test func toxiproxyPythonDrivesEveryToxic() async throws {
        try #require(
            FileManager.default.isExecutableFile(atPath: Self.python.path()),
            "\(Self.python.path()) is missing; run scripts/setup --tests")
        try await withServer { (call, _) async throws in
            let process = Process()
            process.executableURL = Self.python
            process.arguments = [Self.folder.appending(path: "Python/drive_toxics.py").path(), "\(call.port)", "5"]
            let output = Pipe()
            process.standardOutput = output
            process.standardError = output
            try process.run()
            let text = try await blocking {
                let data = output.fileHandleForReading.readDataToEndOfFile()
                process.waitUntilExit()
                return String(decoding: data, as: UTF8.self)
            }
            #expect(process.terminationStatus == 0, "\(text)")
            #expect(text.split(separator: "\n").count { $0.hasPrefix("ok ") } == 16, "\(text)")
        }
    }
}
