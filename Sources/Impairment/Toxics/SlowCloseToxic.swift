internal import LinkModel

/// Bytes pass; the end of the stream waits.
struct SlowCloseToxic: ToxicMachine {
    let delay: Nanoseconds
    private var due: Instant?

    init(delay: Int64) { self.delay = Toxic.span(milliseconds: delay) }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        if let bytes = input.take() { return .pass(bytes) }
        guard input.isAtEnd else { return .idle }
        let due = self.due ?? now + delay
        self.due = due
        return due <= now ? .finish : .wait(until: due)
    }
}
