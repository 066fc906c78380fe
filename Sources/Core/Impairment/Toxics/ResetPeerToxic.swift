internal import Determinism

/// A RST to both sockets, some time after the first byte or the end of the stream; bytes in flight are lost.
struct ResetPeerToxic: ToxicMachine {
    let timeout: Nanoseconds
    private var deadline: Instant?

    init(timeout: Int64) { self.timeout = Toxic.span(milliseconds: timeout) }

    var ignoresBackPressure: Bool { true }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        guard !input.isEmpty || input.isAtEnd else { return .idle }
        let deadline = self.deadline ?? now + timeout
        self.deadline = deadline
        return deadline <= now ? .reset : .wait(until: deadline)
    }
}
