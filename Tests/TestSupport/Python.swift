import Foundation

/// Runs a program of those that `scripts/setup --tests` has put into `.build/python`; gives its exit status and all it said.
public func runPython(
    _ name: String, _ arguments: [String], in folder: String? = nil
) async throws -> (status: Int32, output: String) {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    let program = root.appending(path: ".build/python/bin/\(name)")
    guard FileManager.default.isExecutableFile(atPath: program.path()) else {
        throw PythonError(description: "\(program.path()) is missing; run scripts/setup --tests")
    }
    return try await blocking {
        let (status, output, _) = try runProgram(program.path(), arguments, in: folder, complaints: .withOutput)
        return (status, output)
    }
}

/// Why a program cannot run.
public struct PythonError: Error, CustomStringConvertible {
    public let description: String
}
