import Foundation
import Testing

/// Rules that hold for the text of the repository's files.
@Suite struct TidyTests {
    @Test func eachTargetIsInTheTableOfLayers() {
        #expect(Set(SourceTree.folders(in: "Sources")) == Set(Layers.targets.map(\.name)))
    }

    @Test func theTableOfLayersHasNoCyclesAndPointsDown() {
        var layers: [String: Int] = [:]
        for target in Layers.targets {
            for name in target.targets {
                #expect((layers[name] ?? .max) <= target.layer, "\(target.name) must not depend on \(name)")
            }
            layers[target.name] = target.layer
        }
    }

    @Test(arguments: Layers.targets) func importsFollowTheTable(_ target: Layers.Target) {
        let allowed = Set(target.targets + target.packages)
        for file in SourceTree.swiftFiles(ofTarget: target.name) {
            for (index, line) in file.lines.enumerated() {
                guard let module = Self.importedModule(line), !allowed.contains(module) else { continue }
                if Layers.platform.contains(module) && target.layer > 0 { continue }
                if module == "Foundation" && Self.hasComment(file.lines, at: index) { continue }
                Issue.record("\(file.path):\(index + 1): \(target.name) must not import \(module)")
            }
        }
    }

    /// The targets of layer 0 are deterministic: time and randomness are arguments.
    @Test(arguments: Layers.targets.filter { $0.layer == 0 })
    func layerZeroHasNoClockAndNoAmbientRandomness(_ target: Layers.Target) {
        let clocks = [
            "ContinuousClock", "SuspendingClock", "Date(", "Date.now", "DispatchTime", "clock_gettime", "gettimeofday",
            "NIODeadline.now", "Task.sleep", "mach_absolute_time",
        ]
        let randomness = [
            "SystemRandomNumberGenerator", "UUID()", "arc4random", "getrandom", "drand48", ".randomElement()",
            ".shuffled()", ".shuffle()",
        ]
        for file in SourceTree.swiftFiles(ofTarget: target.name) {
            for (index, line) in file.lines.enumerated() {
                let code = SourceTree.code(line)
                for token in clocks + randomness where SourceTree.contains(token, in: code) {
                    Issue.record("\(file.path):\(index + 1): \(target.name) must not use \(token)")
                }
                if code.contains(".random(in:") && !code.contains("using:") {
                    Issue.record(
                        "\(file.path):\(index + 1): \(target.name) must pass a generator to .random(in:using:)")
                }
            }
        }
    }

    /// A release build may use the memory of the coroutine of `_read` after it has ended. Values that must not be copied have
    /// the accessor `unsafeAddress`.
    @Test(arguments: Layers.targets) func noAccessorReadsByCoroutine(_ target: Layers.Target) {
        for file in SourceTree.swiftFiles(ofTarget: target.name) {
            for (index, line) in file.lines.enumerated() where SourceTree.contains("_read", in: SourceTree.code(line)) {
                Issue.record("\(file.path):\(index + 1): use 'get' or 'unsafeAddress' in place of '_read'")
            }
        }
    }

    /// The most lines of a source file.
    private static let linesMax = 500

    /// Longer files with the reason.
    private static let longFiles = [
        "Sources/TCPModel/TCPLink.swift": "the packets and timers of all connections in one loop",
        "Tests/ImpairmentTests/ToxicTests.swift": "one suite with a shared fixture",
        "Tests/NotesServiceTests/ContractExtensionTests.swift": "one suite with a shared fixture",
        "Tests/NotesServiceTests/ContractTests+Rows.swift": "a table of requests and responses",
        "Tests/HTTPServingTests/HTTPServerConnectionTests.swift": "one suite with a shared fixture",
        "Tests/ProxyServerTests/FastPathTests.swift": "one suite with a shared fixture",
        "Tests/SyncEngineTests/HostileServerTests.swift": "one suite with a shared fixture",
        "Tests/ScenarioModelTests/ScenarioDirectorTests.swift": "one suite with a shared fixture",
        "Tests/ProxyServerTests/ProxyTests.swift": "one suite with a shared fixture",
    ]

    @Test func sourceFilesAreShort() {
        for file in SourceTree.files {
            let isSource =
                file.path.hasPrefix("scripts/")
                || [".swift", ".c", ".h", ".py"].contains { file.path.hasSuffix($0) }
            guard isSource, file.lines.count - 1 > Self.linesMax, Self.longFiles[file.path] == nil else { continue }
            Issue.record("\(file.path) has \(file.lines.count - 1) lines, more than \(Self.linesMax)")
        }
    }

    /// The table of CONTRIBUTING.md fits on a screen.
    private static let commandsMax = 14

    @Test func theCommandsAreFewAndDescribed() {
        let commands = SourceTree.files.map(\.path).filter { $0.hasPrefix("scripts/") && !$0.hasPrefix("scripts/lib/") }
        #expect(commands.count <= Self.commandsMax && !commands.isEmpty)
        let table = SourceTree.files.first { $0.path == "CONTRIBUTING.md" }?.lines ?? []
        for command in commands {
            #expect(
                table.contains { $0.hasPrefix("| `\(command)` |") }, "\(command) is not in the table of CONTRIBUTING.md"
            )
        }
    }

    @Test func noTextNamesThePathsOfOneMachine() {
        // The paths are composed here, so that this file contains none of them.
        let paths = ["root", "home", "Users", "work", "workspace"].map { "/" + $0 + "/" }
        for file in SourceTree.files {
            for (index, line) in file.lines.enumerated() {
                for path in paths where Self.namesPath(path, in: line) {
                    Issue.record("\(file.path):\(index + 1): the text contains '\(path)'")
                }
            }
        }
    }

    /// Returns whether a line contains an absolute path that begins with `path`; a path inside a URL or a longer path does not count.
    private static func namesPath(_ path: String, in line: Substring) -> Bool {
        guard let range = line.range(of: path) else { return false }
        guard range.lowerBound > line.startIndex else { return true }
        let before = line[line.index(before: range.lowerBound)]
        return !before.isLetter && !before.isNumber && !"._-)}$*\"".contains(before)
    }

    private static func importedModule(_ line: Substring) -> String? {
        let words = SourceTree.code(line).split(separator: " ")
        guard let index = words.firstIndex(of: "import"), index + 1 < words.count, index <= 2 else { return nil }
        let before = words[..<index]
        guard before.allSatisfy({ $0.hasPrefix("@") || ["public", "internal", "package"].contains($0) }) else {
            return nil
        }
        return String(words[index + 1].prefix { $0 != "." })
    }

    private static func hasComment(_ lines: [Substring], at index: Int) -> Bool {
        lines[index].contains("//") || index > 0 && lines[index - 1].contains("//")
    }
}
