internal import CommandSupport
internal import ConfigFiles
internal import Foundation
internal import Scenario

/// The file of a shrunk run: an ordinary scenario with a comment on its origin.
public struct FailureFile: Sendable {
    /// The reason why a file was not written.
    public struct WriteError: Error, CustomStringConvertible {
        /// What failed, where and why.
        public let description: String
    }

    /// The folder of the files.
    public static let folder = ".slowlane/failures"
    /// The maximum number of files with different failures of one name.
    private static let filesMax = 1000

    /// The name without the suffix.
    public let name: String
    /// The comment at the beginning.
    public let comments: [String]
    /// The content without the comment.
    public let content: String

    /// Creates the file of a shrunk run.
    public init(_ shrunk: ShrunkRun) throws(WriteError) {
        name = shrunk.result.violation.fileName
        let origin = "\(shrunk.run.scenario.fullName), seed \(shrunk.run.seed)"
        var scenario = Self.named(shrunk.result.scenario, name)
        scenario.about = "\(shrunk.result.violation.description), shrunk from \(origin)."
        do {
            content = try ScenarioWriter.text(scenario)
        } catch {
            throw WriteError(description: "the shrunk scenario has no file: \(error)")
        }
        comments = Self.comments(shrunk)
    }

    /// Returns a scenario with another name.
    static func named(_ scenario: Scenario, _ name: String) -> Scenario {
        var named = Scenario(name: name)
        named.about = scenario.about
        named.tags = scenario.tags
        named.seed = scenario.seed
        named.limit = scenario.limit
        named.restoreAt = scenario.restoreAt
        named.server = scenario.server
        named.contract = scenario.contract
        named.tokenLife = scenario.tokenLife
        named.notes = scenario.notes
        named.records = scenario.records
        named.fill = scenario.fill
        named.devices = scenario.devices
        named.policy = scenario.policy
        named.writers = scenario.writers
        named.faults = scenario.faults
        named.steps = scenario.steps
        named.workload = scenario.workload
        named.expectations = scenario.expectations
        named.invariants = scenario.invariants
        return named
    }

    private static func comments(_ shrunk: ShrunkRun) -> [String] {
        let (run, result) = (shrunk.run, shrunk.result)
        var lines = ["Origin: \(ReplayCommand.arguments(run).map(ReplayCommand.quoted).joined(separator: " "))"]
        lines.append("Violation: \(TextTable.singleLine(result.violation.description))")
        lines.append("Shrunk from \(ShrunkRun.size(result.original)) to \(ShrunkRun.size(result.scenario))")
        lines.append("in \(TextTable.count(result.runs, "run")).")
        if !result.isComplete { lines.append("A limit ended the search; a longer one may find a smaller scenario.") }
        return lines
    }

    /// Returns the text of a file with a name.
    private func text(named other: String) -> String {
        comments.map { "# \($0)\n" }.joined()
            + content.replacingOccurrences(of: "\nname: \(name)\n", with: "\nname: \(other)\n")
    }

    /// Writes the file into a folder, and returns its path. A file with another failure is not replaced: the name gets a
    /// number.
    public func write(to folder: String = folder) throws(WriteError) -> String {
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        } catch {
            let reason = FileFailure.reason(error, writing: folder)
            throw WriteError(description: "cannot create the folder \(folder): \(reason)")
        }
        for number in 1...Self.filesMax {
            let other = number > 1 ? "\(name)-\(number)" : name
            let path = "\(folder)/\(other).yaml"
            if FileManager.default.fileExists(atPath: path), !isSame(asFileAt: path) { continue }
            do {
                try ScenarioFiles.write(text(named: other), to: path)
            } catch {
                throw WriteError(description: error.description)
            }
            return path
        }
        throw WriteError(description: "\(folder) has \(Self.filesMax) files called \(name); remove some")
    }

    /// Returns whether a file has the same scenario, whatever its comments, name and description are.
    private func isSame(asFileAt path: String) -> Bool {
        guard let other = try? ScenarioFiles.read(path) else { return false }
        func values(_ text: String) -> [Substring] {
            var isAbout = false
            return text.split(separator: "\n").filter { line in
                if !line.hasPrefix(" ") { isAbout = line.hasPrefix("about:") }
                return !isAbout && !line.hasPrefix("#") && !line.hasPrefix("name:")
            }
        }
        return values(other) == values(content)
    }
}

extension ShrunkRun {
    /// Returns the size of a scenario in words.
    static func size(_ scenario: Scenario) -> String {
        let entries = scenario.devices.map(\.network.count).reduce(0, +)
        return [
            TextTable.count(scenario.steps.count, "step"), TextTable.count(scenario.faults.count, "fault"),
            TextTable.count(entries, "network entry", "network entries"),
        ].joined(separator: ", ")
    }

    /// The real time of the search with its unit.
    var seconds: String {
        let tenths = Int((wallTime / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
