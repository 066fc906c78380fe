internal import Determinism

/// A toxic that passes everything: `noop`, a toxic that does not apply to a connection, and `packet_loss`, whose losses
/// the link models.
struct NoopToxic: ToxicMachine {
    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        if let bytes = input.take() { return .pass(bytes) }
        return input.isAtEnd ? .finish : .idle
    }
}
