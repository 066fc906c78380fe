import Foundation
import Testing

/// Rules that hold for the text of the repository's files.
@Suite struct TidyTests {
    @Test func eachFolderOfALayerIsATargetOfThePackage() {
        let graph = PackageGraph.package
        for layer in PackageGraph.layers where layer != "C" {
            let declared = graph.targets.filter { $0.layer == layer }.map(\.name)
            #expect(SourceTree.folders(in: "Sources/\(layer)") == declared.sorted())
        }
        #expect(SourceTree.folders(in: "Sources") == PackageGraph.layers.sorted())
        #expect(graph.targets.count + SourceTree.folders(in: "Sources/C").count <= Self.targetsMax)
    }

    /// The most targets of `Sources`.
    private static let targetsMax = 32

    @Test func targetsDependOnEarlierTargetsOfTheirLayerOrOfALowerOne() {
        let graph = PackageGraph.package
        var layers = Dictionary(uniqueKeysWithValues: SourceTree.folders(in: "Sources/C").map { ($0, "C") })
        for target in graph.targets {
            let layer = PackageGraph.layers.firstIndex(of: target.layer) ?? 0
            for name in target.modules where graph.packages[name] == nil {
                let other = layers[name].flatMap { PackageGraph.layers.firstIndex(of: $0) } ?? .max
                #expect(other <= layer, "\(target.name) must not depend on \(name)")
            }
            layers[target.name] = target.layer
        }
    }

    /// A target declares what its files import, and nothing else.
    @Test(arguments: PackageGraph.package.targets) func importsAreThoseOfThePackage(_ target: PackageGraph.Target) {
        var unused = Set(target.modules)
        for file in SourceTree.swiftFiles(of: target) {
            for (index, line) in file.lines.enumerated() {
                guard let module = Self.importedModule(line) else { continue }
                unused.remove(module)
                if target.modules.contains(module) { continue }
                if PackageGraph.platform.contains(module) && target.layer != "Core" { continue }
                if module == "Foundation" && Self.hasComment(file.lines, at: index) { continue }
                Issue.record("\(file.path):\(index + 1): \(target.name) must not import \(module)")
            }
        }
        #expect(unused.isEmpty, "Package.swift declares modules that \(target.name) does not import")
    }

    /// The table of docs/internals/architecture.md has the targets of Package.swift with their layers and modules.
    @Test func theArchitecturePageHasTheGraphOfThePackage() {
        let lines = SourceTree.files.first { $0.path == "docs/internals/architecture.md" }?.lines ?? []
        for target in PackageGraph.package.targets {
            let row = lines.first { $0.hasPrefix("| \(target.layer) | `\(target.name)` |") }
            let cells = row?.split(separator: "|").map { $0.trimmingPrefix(" ") }
            let modules = target.modules.isEmpty ? "" : target.modules.joined(separator: ", ") + " "
            #expect(cells?.last.map(String.init) == modules, "the row of \(target.name)")
        }
    }

    /// The targets of the lower layers are deterministic: time and randomness are arguments.
    @Test(arguments: PackageGraph.package.targets.filter(\.isPure))
    func decisionsHaveNoClockAndNoAmbientRandomness(_ target: PackageGraph.Target) {
        let clocks = [
            "ContinuousClock", "SuspendingClock", "Date(", "Date.now", "DispatchTime", "clock_gettime", "gettimeofday",
            "NIODeadline.now", "Task.sleep", "mach_absolute_time",
        ]
        let randomness = [
            "SystemRandomNumberGenerator", "UUID()", "arc4random", "getrandom", "drand48", ".randomElement()",
            ".shuffled()", ".shuffle()",
        ]
        for file in SourceTree.swiftFiles(of: target) {
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
    @Test(arguments: PackageGraph.package.targets) func noAccessorReadsByCoroutine(_ target: PackageGraph.Target) {
        for file in SourceTree.swiftFiles(of: target) {
            for (index, line) in file.lines.enumerated() where SourceTree.contains("_read", in: SourceTree.code(line)) {
                Issue.record("\(file.path):\(index + 1): use 'get' or 'unsafeAddress' in place of '_read'")
            }
        }
    }

    /// The most lines of a source file.
    private static let linesMax = 500

    /// Longer files with the reason.
    private static let longFiles = [
        "Sources/Core/TCPModel/TCPLink.swift": "the packets and timers of all connections in one loop",
        "Sources/C/CResources/resources.c": "a table of files",
        "Tests/Core/ImpairmentTests/ToxicTests.swift": "one suite with a shared fixture",
        "Tests/Drivers/NotesServiceTests/ContractExtensionTests.swift": "one suite with a shared fixture",
        "Tests/Drivers/NotesServiceTests/ContractTests+Rows.swift": "a table of requests and responses",
        "Tests/Drivers/HTTPSocketsTests/HTTPServerConnectionTests.swift": "one suite with a shared fixture",
        "Tests/Drivers/ProxyTests/FastPathTests.swift": "one suite with a shared fixture",
        "Tests/Core/ClientTests/HostileServerTests.swift": "one suite with a shared fixture",
        "Tests/Core/ScenarioTests/ScenarioDirectorTests.swift": "one suite with a shared fixture",
        "Tests/Drivers/ProxyTests/ProxyTests.swift": "one suite with a shared fixture",
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
