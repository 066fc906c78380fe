#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The environment variables of the tests. CONTRIBUTING.md describes them.
public enum TestSettings {
    private static func variable(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }

    /// The factor of the work of randomised and long tests, `SLOWLANE_SEEDS`; 1 is the work of `scripts/test`.
    public static let factor = min(max(variable("SLOWLANE_SEEDS").flatMap(UInt64.init) ?? 1, 1), 1_000_000)

    /// The factor of `scripts/soak tests`.
    public static let soakFactor: UInt64 = 20

    /// Whether tests do more than in `scripts/test`, for example with each API contract.
    public static let isSoak = factor > 1

    /// The first seed of the randomised tests, `SLOWLANE_FIRST_SEED`.
    public static let firstSeed = variable("SLOWLANE_FIRST_SEED").flatMap(UInt64.init)

    /// The names of the cases that run in both worlds, from `SLOWLANE_CASE`; `nil` for all of them.
    public static let cases = variable("SLOWLANE_CASE")?.split(separator: ",").map(String.init)

    /// Whether tests write the generated tables of the documentation, `SLOWLANE_WRITE_DOCS`.
    public static let writesDocs = variable("SLOWLANE_WRITE_DOCS") != nil

    /// The path of the command under test, `SLOWLANE_PROGRAM`; `nil` for the debug build.
    public static let program = variable("SLOWLANE_PROGRAM")

    /// Returns the amount of a test's work: `usual` in `scripts/test`, `soak` in `scripts/soak tests`, and a linear function of
    /// the factor otherwise.
    public static func work(_ usual: Int, soak: Int) -> Int {
        usual + (soak - usual) * Int(factor - 1) / Int(soakFactor - 1)
    }
}

/// Returns the seeds of a randomised test: `count` of them for each unit of the factor, from `first` on.
public func randomSeeds(_ count: UInt64, from first: UInt64 = 0) -> Range<UInt64> {
    let start = TestSettings.firstSeed ?? first
    return start..<start + count * TestSettings.factor
}

/// Returns the seeds of a randomised test: `usual` of them in `scripts/test`, `soak` of them in `scripts/soak tests`.
public func randomSeeds(_ usual: Int, soak: Int) -> Range<UInt64> {
    let start = TestSettings.firstSeed ?? 0
    return start..<start + UInt64(TestSettings.work(usual, soak: soak))
}
