internal import ArgumentParser
internal import CommandSupport
internal import Foundation
internal import ScenarioRunner

/// The options of a process that does one part of the work: which part, and the file of its results.
struct ShardOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Run one shard of the work, for instance 2/4; 'auto' and 'auto/4' read the variables of a job "
                + "scheduler.", valueName: "i/n"))
    var shard: String?

    @Option(
        help: ArgumentHelp(
            "Write results as JSON lines to a file, which 'slowlane merge-reports' reads.", valueName: "file"))
    var results: String?

    /// Returns the part that the arguments name, and prints the variables that it was taken from.
    func resolved(_ console: Console) throws -> Shard? {
        guard let shard else { return nil }
        do throws(Shard.Failure) {
            let named = try Shard.named(shard, environment: ProcessInfo.processInfo.environment)
            if let variables = named.variables {
                console.print("--shard \(shard): \(named.shard) (\(variables))", to: .progress)
            }
            return named.shard
        } catch {
            throw ValidationError("--shard: \(error)")
        }
    }
}
