import Foundation
import TestSupport
import Testing

/// What can be tested of the `Dockerfile` without a Docker engine.
@Suite struct DockerfileTests {
    private static let root = Repository.root
    /// The instructions, each with its arguments, without flags.
    private let instructions: [(name: Substring, arguments: [Substring], flags: [Substring])]

    init() throws {
        let text = try String(contentsOf: Self.root.appending(path: "Dockerfile"), encoding: .utf8)
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.joined(separator: "\n")
        instructions = lines.replacing("\\\n", with: " ").split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            return (words[0], words.dropFirst().filter { !$0.hasPrefix("--") }, words.filter { $0.hasPrefix("--") })
        }
    }

    private static func run(_ program: String, _ arguments: [String]) throws -> String {
        let (status, output, errors) = try runProgram("/usr/bin/env", [program] + arguments, in: root.path())
        try #require(status == 0, "\(program) \(arguments): \(errors)")
        return output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Creates the context of a build from a fresh clone: the files of the index, without those that Docker ignores.
    private static func makeContext(in folder: TemporaryFolder) throws -> URL {
        let context = folder.url.appending(path: "context")
        let archive = folder.url.appending(path: "archive.tar").path()
        try FileManager.default.createDirectory(at: context, withIntermediateDirectories: true)
        _ = try run("git", ["archive", "--output", archive, try run("git", ["write-tree"])])
        _ = try run("tar", ["-xf", archive, "-C", context.path()])
        let ignored = try String(contentsOf: context.appending(path: ".dockerignore"), encoding: .utf8)
        for path in ignored.split(separator: "\n") {
            try #require(path.allSatisfy { $0.isLetter || ".-_/".contains($0) }, "the test knows no pattern '\(path)'")
            try? FileManager.default.removeItem(at: context.appending(path: String(path)))
        }
        return context
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: root.appending(path: ".git").path())))
    func eachCopyHasItsSourcesInAFreshClone() throws {
        let folder = try TemporaryFolder()
        let context = try Self.makeContext(in: folder)
        let image = folder.url.appending(path: "build")
        try FileManager.default.createDirectory(at: image, withIntermediateDirectories: true)
        var count = 0
        for (name, arguments, flags) in instructions where name == "COPY" && flags.isEmpty {
            #expect(["./", "."].contains(arguments.last), "the test knows no destination \(arguments)")
            for source in arguments.dropLast() {
                let path = context.appending(path: source == "." ? "." : String(source)).path()
                guard FileManager.default.fileExists(atPath: path) else {
                    Issue.record("a fresh clone has no \(source), which the Dockerfile copies")
                    continue
                }
                _ = try Self.run("cp", ["-R", path, image.path()])
                count += 1
            }
        }
        #expect(count == 2)
        // What the instructions RUN use.
        for path in ["Package.swift", "Sources/Program/slowlane", "scripts/lib/image-root"] {
            #expect(FileManager.default.fileExists(atPath: image.appending(path: path).path()), "\(path)")
        }
    }

    /// The version of the image `swift` from which the program is built, such as 6.3.1.
    private var swiftVersion: [Int] {
        let image = instructions.first { $0.name == "FROM" }?.arguments.first
        let tag = image?.split(separator: ":").last?.split(separator: "-").first ?? ""
        return tag.split(separator: ".").compactMap { Int($0) }
    }

    @Test func theVersionOfSwiftIsExactAndNotOlderThanThePackageAllows() throws {
        let package = try String(contentsOf: Self.root.appending(path: "Package.swift"), encoding: .utf8)
        let oldest = try #require(package.firstMatch(of: /swift-tools-version: *(\d+)\.(\d+)/))
        let (major, minor) = (try #require(Int(oldest.1)), try #require(Int(oldest.2)))
        #expect(swiftVersion.count >= 3, "expected a version with a patch level, found \(swiftVersion)")
        #expect(!swiftVersion.lexicographicallyPrecedes([major, minor]))
    }

    /// A developer may use another version.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["CI"] != nil))
    func theVersionOfSwiftIsTheOneThatRunsTheTests() throws {
        let text = try Self.run("swift", ["--version"])
        let found = try #require(text.firstMatch(of: /Swift version ([0-9.]+)/))
        #expect(found.1.split(separator: ".").compactMap { Int($0) } == swiftVersion)
    }
}
