internal import Determinism
internal import NIOCore

/// A rate limit: each slice leaves after its transmission time, and an idle stream accumulates no credit.
struct BandwidthToxic: ToxicMachine {
    /// Bytes per millisecond, which is kB/s.
    let rate: Int64
    /// The next slice of the first chunk, and the time at which it leaves.
    private var slice: (bytes: Int, deadline: Instant)?

    /// A chunk that takes longer than this leaves in slices of this length.
    private static let sliceMilliseconds: Int64 = 100
    /// The largest rate, higher than any machine reaches; it bounds the products.
    private static let rateMax: Int64 = 1_000_000_000_000

    init(rate: Int64) { self.rate = min(max(0, rate), Self.rateMax) }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        guard let first = input.first else { return input.isAtEnd ? .finish : .idle }
        guard rate > 0 else { return .wait(until: .never) }
        if slice == nil {
            let bytes = min(Int64(first.bytes.readableBytes), rate * Self.sliceMilliseconds)
            slice = (Int(bytes), now + Nanoseconds(bytes * 1_000_000 / rate))
        }
        guard let (bytes, deadline) = slice, deadline <= now else { return .wait(until: slice?.deadline ?? now) }
        slice = nil
        return input.take(atMost: bytes).map { .pass($0) } ?? .idle
    }
}
