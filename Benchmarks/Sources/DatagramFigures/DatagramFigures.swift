import Foundation
import LinkModel

/// Sends many datagrams through the link for each of some settings, simulated and live, and compares what arrives with the
/// formulas of the settings. Exit status 1 if a figure differs.
@main struct DatagramFigures {
    static func main() {
        var options = Options()
        do {
            options = try Options(CommandLine.arguments.dropFirst())
        } catch {
            print(
                "DatagramFigures: \(error)\nusage: DatagramFigures [--count N] [--seed N] [--only NAME] [--program SLOWLANE]"
            )
            exit(64)
        }
        let settings = Setting.all.filter { options.only.map($0.name.contains) ?? true }
        print("\(options.count) datagrams of \(Setting.payloadBytes) bytes per setting, seed \(options.seed)")
        print("| setting | figure | formula | simulated | live |")
        print("|---|---|---|---|---|")
        var failures: [String] = []
        for setting in settings {
            let simulated = simulate(setting, count: options.count, seed: options.seed)
            var live: [Arrival]?
            var lateness = Checks()
            if let program = options.program {
                do {
                    let run = try attempt {
                        try LiveRun(setting, program: program, count: options.count, seed: options.seed)
                    }
                    live = run.arrivals
                    lateness = setting.comparison(simulated, run)
                } catch {
                    failures.append("\(setting.name): \(error)")
                }
            }
            let own = setting.checks(simulated, count: options.count)
            let real = live.map { setting.countChecks($0, count: options.count) }
            for check in own.all {
                let other = real?.all.first { $0.figure == check.figure }
                print(
                    "| \(setting.name) | \(check.figure) | \(check.expected) | \(check.found) | \(other?.found ?? "") |"
                )
            }
            for check in lateness.all {
                print("| \(setting.name) | \(check.figure) | \(check.expected) | | \(check.found) |")
            }
            let all =
                own.all.map { ("simulated", $0) } + (real?.all ?? []).map { ("live", $0) }
                + lateness.all.map { ("live", $0) }
            failures += all.filter { !$0.1.holds }.map { "\(setting.name), \($0.0): \($0.1.figure)" }
        }
        for failure in failures { print("FAILED: \(failure)") }
        print(failures.isEmpty ? "ok" : "\(failures.count) failures")
        exit(failures.isEmpty ? 0 : 1)
    }
}

/// The maximum number of runs of a setting: other programs may keep the proxy from reading in time.
private let attemptsMax = 3

private func attempt(_ run: () throws -> LiveRun) throws -> LiveRun {
    for _ in 1..<attemptsMax { if let result = try? run() { return result } }
    return try run()
}

/// The arguments.
struct Options {
    var count = 1_000_000
    var seed: UInt64 = 1
    var only: String?
    var program: String?

    struct ParseError: Error, CustomStringConvertible { let description: String }

    init() {}

    init(_ arguments: ArraySlice<String>) throws {
        var rest = arguments
        while let name = rest.popFirst() {
            guard let value = rest.popFirst() else { throw ParseError(description: "'\(name)' needs a value") }
            switch name {
            case "--count":
                guard let number = Int(value), (1000...10_000_000).contains(number) else {
                    throw ParseError(description: "--count '\(value)' is not a number from 1000 to 10000000")
                }
                count = number
            case "--seed":
                guard let number = UInt64(value) else {
                    throw ParseError(description: "--seed '\(value)' is not a number")
                }
                seed = number
            case "--only": only = value
            case "--program": program = value
            default: throw ParseError(description: "unknown option '\(name)'")
            }
        }
    }
}
