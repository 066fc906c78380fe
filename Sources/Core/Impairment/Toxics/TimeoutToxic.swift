internal import Determinism

/// A black hole: every byte is discarded, and both sockets are closed when none has arrived for `timeout`. The end of
/// the stream passes.
struct TimeoutToxic: ToxicMachine {
    /// `nil` means forever.
    let timeout: Nanoseconds?
    /// The arrival of the last byte, or the creation of the toxic.
    private var idleSince: Instant

    init(timeout: Int64, at now: Instant) {
        self.timeout = timeout > 0 ? Toxic.span(milliseconds: timeout) : nil
        idleSince = now
    }

    var ignoresBackPressure: Bool { true }
    var mustCloseOnRemoval: Bool { true }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        if !input.isEmpty { idleSince = max(idleSince, input.lastArrival) }
        input.dropAll()
        if input.isAtEnd { return .finish }
        guard let timeout else { return .idle }
        return idleSince + timeout <= now ? .close : .wait(until: idleSince + timeout)
    }
}
