internal import Determinism

/// The limit on the attempts of a device: requests and attempts to connect. Only a client that repeats attempts without
/// a delay exceeds it; its run would not end in an acceptable time.
///
/// A token bucket: ``AttemptLimit/perSecond`` attempts per second, and a burst that grows with the work of the scenario.
struct AttemptLimit {
    /// The attempts per second that are always allowed. A client with delays makes fewer than one.
    private static let perSecond: Int64 = 20
    /// The attempts that are allowed at once, besides those for each record and step.
    private static let burst: Int64 = 1_000
    /// The attempts that are allowed at once for each record at the start, generated ones included, and for each step: to
    /// fetch and send it, and to repeat that.
    private static let burstPerRecord: Int64 = 20

    private let span = Nanoseconds(1_000_000_000 / perSecond)
    private let longest: Nanoseconds
    /// The time after which the attempts so far are within the rate.
    private var end = Instant.start
    /// The first attempt that was not within the rate, and the number of attempts since then.
    private var start = Instant.start
    private var count = 0

    init(_ scenario: Scenario) {
        let counts = [
            scenario.notes.count, scenario.fill?.notes ?? 0, scenario.records.count, scenario.steps.count,
        ]
        let records = counts.reduce(Int64(0)) { $0.addingSaturating(Int64($1)) }
        let attempts = records.multipliedSaturating(by: Self.burstPerRecord).addingSaturating(Self.burst)
        longest = Nanoseconds(span.count.multipliedSaturating(by: attempts))
    }

    /// Records an attempt. Returns the number of attempts and their time if it exceeds the limit.
    mutating func attempted(at time: Instant) -> (count: Int, span: Nanoseconds)? {
        if time >= end {
            (start, end) = (time, time)
            count = 0
        }
        count += 1
        end = end + span
        return end - time > longest ? (count, time - start) : nil
    }
}
