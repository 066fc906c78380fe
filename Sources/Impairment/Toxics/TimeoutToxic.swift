internal import LinkModel

/// Swallows every byte, and closes both sockets once none has come for a while. The end of the stream passes.
struct TimeoutToxic: ToxicMachine {
    /// `nil` is for ever.
    let timeout: Nanoseconds?
    /// Since when nothing has come.
    private var silentSince: Instant

    init(timeout: Int64, at now: Instant) {
        self.timeout = timeout > 0 ? Toxic.span(milliseconds: timeout) : nil
        silentSince = now
    }

    var isUrgent: Bool { true }
    var mustCloseOnRemoval: Bool { true }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        if !input.isEmpty { silentSince = max(silentSince, input.lastArrival) }
        input.dropAll()
        if input.isAtEnd { return .finish }
        guard let timeout else { return .idle }
        return silentSince + timeout <= now ? .close : .wait(until: silentSince + timeout)
    }
}
