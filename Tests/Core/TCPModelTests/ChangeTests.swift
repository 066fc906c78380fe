import Determinism
import LinkModel
import Testing

@testable import TCPModel

/// Changes of conditions with packets queued or in flight.
@Suite struct ChangeTests {
    private static let far = Conditions(
        up: DirectionConditions(delay: .seconds(60)), down: DirectionConditions(delay: .seconds(60)))
    private static let edge = Conditions(
        up: DirectionConditions(rate: .kilobits(200), delay: .milliseconds(440)),
        down: DirectionConditions(rate: .kilobits(240), delay: .milliseconds(400)))
    private static let wifi = Conditions(
        up: DirectionConditions(rate: .kilobits(33_000), delay: .milliseconds(1)),
        down: DirectionConditions(rate: .kilobits(40_000), delay: .milliseconds(1)))

    /// Returns the times from `start` at which the connection is established and at which 10 kB arrive.
    private func times(of flow: FlowID, _ link: inout TCPLink, from start: Instant) -> [Nanoseconds] {
        link.send(10_000, on: flow, .down, at: start)
        var times: [Nanoseconds] = []
        while link.advance(to: start + .seconds(30)) {
            while let event = link.takeEvent() {
                if event.flow == flow { times.append(event.time - start) }
            }
        }
        return times
    }

    @Test(arguments: [far, edge], [wifi, .clear, edge])
    func aNewConnectionDoesNotWaitForPacketsOfAnEarlierLink(_ before: Conditions, _ after: Conditions) {
        if before == after { return }
        var link = TCPLink(before, seed: 1)
        let old = link.open(at: .start, isEstablished: true)
        for direction in Direction.allCases { link.send(60_000, on: old, direction, at: .start) }
        let change = Instant(.milliseconds(10))
        while link.advance(to: change) { while link.takeEvent() != nil {} }
        link.setConditions(after)
        var fresh = TCPLink(after, seed: 1)
        _ = fresh.open(at: .start)
        let first = times(of: link.open(at: change), &link, from: change)
        let second = times(of: fresh.open(at: change), &fresh, from: change)
        #expect(first.count >= 3)
        #expect(first == second)
    }

    @Test func laterPacketsOfAConnectionDoNotOvertakeEarlierOnes() throws {
        var link = TCPLink(Self.far, seed: 1)
        let old = link.open(at: .start, isEstablished: true)
        link.send(1, on: old, .down, at: .start)
        link.setConditions(.clear)
        let new = link.open(at: .start)
        while link.advance(to: Instant(.seconds(1))) {}
        link.send(1000, on: old, .down, at: Instant(.seconds(1)))
        let (oldWaits, newDoesNot) = (
            !link.canBypassModel(old, .down, at: Instant(.seconds(1))),
            link.canBypassModel(new, .down, at: Instant(.seconds(1)))
        )
        #expect(oldWaits && newDoesNot)
        var came: [(Int, Nanoseconds)] = []
        while link.advance(to: Instant(.seconds(200))) {
            while let event = link.takeEvent() {
                guard case .delivered(let bytes, _) = event.event, event.flow == old else { continue }
                came.append((bytes, event.time.sinceStart))
            }
        }
        #expect(came.map(\.0) == [1, 1000])
        #expect(came.allSatisfy { $0.1 == .seconds(60) })
        let canBypass = link.canBypassModel(old, .down, at: Instant(.seconds(200)))
        #expect(canBypass)
    }
}
