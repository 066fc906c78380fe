#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Returns the seeds of a randomised test: `count` of them, or `SLOWLANE_SEEDS` times as many if that variable is set.
public func randomSeeds(_ count: UInt64) -> Range<UInt64> {
    let factor = ProcessInfo.processInfo.environment["SLOWLANE_SEEDS"].flatMap(UInt64.init) ?? 1
    return 0..<count * min(max(factor, 1), 1_000_000)
}
