import Determinism
import ForwardProxy
import Testing

/// The time limit of a client's handshake, in virtual time.
@Suite struct HandshakeLimitTests {
    /// Returns the time at which a client exceeds the limit; `nil` if it does not within ten minutes.
    private static func end(
        _ timeMax: Nanoseconds = HandshakeLimit.timeMaxDefault, late: Nanoseconds = .zero,
        isCarrying: (Instant) -> Bool
    ) -> Nanoseconds? {
        let start = Instant(.seconds(5))
        var limit = HandshakeLimit(timeMax, at: start)
        while limit.nextDeadline < start + .seconds(600) {
            let now = limit.nextDeadline + late
            if limit.advance(to: now, isCarrying: isCarrying(now)) { return now - start }
        }
        return nil
    }

    @Test func aSilentClientExceedsTheLimitAfter30Seconds() {
        #expect(Self.end { _ in false } == .seconds(30))
        #expect(Self.end(.milliseconds(1500)) { _ in false } == .milliseconds(1500))
    }

    @Test func theTimeOfTheLinkDoesNotCount() {
        // An outage of two minutes, during which the client's bytes wait on the link.
        let outage = Instant(.seconds(10))...Instant(.seconds(130))
        let end = Self.end { outage.contains($0) }
        #expect(end.map { $0 >= .seconds(150) && $0 <= .seconds(152) } == true, "\(String(describing: end))")
        #expect(Self.end { _ in true } == nil)
    }

    /// A client that sends a byte now and then: each one is on the link for a short time only.
    @Test func aClientThatTricklesExceedsTheLimitToo() {
        let end = Self.end { $0.sinceStart.count / 1_000_000_000 % 4 == 0 }
        #expect(end.map { $0 > .seconds(30) && $0 <= .seconds(45) } == true, "\(String(describing: end))")
    }

    @Test func theTimeOfALateTimerDoesNotCount() {
        let end = Self.end(late: .seconds(9)) { _ in false }
        #expect(end == .seconds(300))
    }
}
