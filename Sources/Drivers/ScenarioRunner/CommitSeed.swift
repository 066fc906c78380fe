internal import Foundation

/// The random seed of scenarios with `seed: commit`: the first 12 hexadecimal digits of the current commit's name.
struct CommitSeed {
    /// The reason why there is no current commit.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static let digits = 12

    /// Returns the seed of the repository that contains a folder.
    static func seed(ofFolder folder: String) throws(Failure) -> UInt64 {
        let (output, errors): (String, String)
        do {
            (output, errors) = try run(["git", "rev-parse", "--verify", "HEAD"], in: folder)
        } catch {
            throw Failure(description: "git cannot be run: \(error)")
        }
        let name = output.prefix { $0.isHexDigit }
        guard name.utf8.count >= 40, let seed = UInt64(name.prefix(digits), radix: 16) else {
            let reason = errors.split(separator: "\n").first.map(String.init) ?? "git names no commit"
            throw Failure(description: reason)
        }
        return seed
    }

    /// Runs a program of the search path and returns what it writes.
    private static func run(_ arguments: [String], in folder: String) throws -> (output: String, errors: String) {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        process.currentDirectoryURL = URL(filePath: folder)
        process.standardInput = FileHandle.nullDevice
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        // Both texts are a few lines, which fit into the buffers of the pipes.
        process.waitUntilExit()
        func text(_ pipe: Pipe) throws -> String {
            String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        }
        return (try text(output), try text(errors))
    }
}
