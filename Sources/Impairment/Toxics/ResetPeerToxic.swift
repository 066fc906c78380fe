internal import LinkModel

/// Waits for the first byte or the end, then a while, then resets both sockets; what was on its way is lost.
struct ResetPeerToxic: ToxicMachine {
    let timeout: Nanoseconds
    private var due: Instant?

    init(timeout: Int64) { self.timeout = Toxic.span(milliseconds: timeout) }

    var isUrgent: Bool { true }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        guard !input.isEmpty || input.isAtEnd else { return .idle }
        let due = self.due ?? now + timeout
        self.due = due
        return due <= now ? .reset : .wait(until: due)
    }
}
