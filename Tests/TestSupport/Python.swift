import Foundation

/// Runs a program that `scripts/setup --tests` installed in `.build/python` and returns its exit status and output.
public func runPython(
    _ name: String, _ arguments: [String], in folder: String? = nil
) async throws -> (status: Int32, output: String) {
    let root = Repository.root
    let program = root.appending(path: ".build/python/bin/\(name)")
    guard FileManager.default.isExecutableFile(atPath: program.path()) else {
        throw PythonError(description: "cannot run \(program.path()): no such file; run scripts/setup --tests")
    }
    return try await blocking {
        let (status, output, _) = try runProgram(program.path(), arguments, in: folder, standardError: .withOutput)
        return (status, output)
    }
}

/// A missing program.
public struct PythonError: Error, CustomStringConvertible {
    public let description: String
}
