internal import LinkModel
internal import NIOCore

/// Every byte is paid for before it leaves: time without bytes earns nothing.
struct BandwidthToxic: ToxicMachine {
    /// Bytes in a millisecond, which is kB/s.
    let rate: Int64
    /// What the first chunk's next slice has been waiting for.
    private var slice: (bytes: Int, due: Instant)?

    /// A chunk that takes longer than this leaves in slices of so long.
    private static let sliceMilliseconds: Int64 = 100
    /// Faster than any machine.
    private static let rateMax: Int64 = 1_000_000_000_000

    init(rate: Int64) { self.rate = min(max(0, rate), Self.rateMax) }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        guard let first = input.first else { return input.isAtEnd ? .finish : .idle }
        guard rate > 0 else { return .wait(until: .never) }
        if slice == nil {
            let bytes = min(Int64(first.bytes.readableBytes), rate * Self.sliceMilliseconds)
            slice = (Int(bytes), now + Nanoseconds(bytes * 1_000_000 / rate))
        }
        guard let (bytes, due) = slice, due <= now else { return .wait(until: slice?.due ?? now) }
        slice = nil
        return input.take(atMost: bytes).map { .pass($0) } ?? .idle
    }
}
