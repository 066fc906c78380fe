internal import Determinism

/// A delay of the end of the stream; bytes pass at once.
struct SlowCloseToxic: ToxicMachine {
    let delay: Nanoseconds
    private var deadline: Instant?

    init(delay: Int64) { self.delay = Toxic.span(milliseconds: delay) }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        if let bytes = input.take() { return .pass(bytes) }
        guard input.isAtEnd else { return .idle }
        let deadline = self.deadline ?? now + delay
        self.deadline = deadline
        return deadline <= now ? .finish : .wait(until: deadline)
    }
}
