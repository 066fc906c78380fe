import Determinism
import Impairment
import LinkModel
import Testing

@testable import Scenario

/// The choice of the exchanges and points of faults.
@Suite struct FaultCountersTests {
    private static func fault(
        _ action: Scenario.Fault.Action, at point: Scenario.Fault.Point, times: ClosedRange<Int> = 0...1000
    ) -> Scenario.Fault {
        .init(
            request: .init(method: nil, row: nil), times: times, device: nil, point: point, action: action,
            location: SourceLocation(file: "s.yaml"))
    }

    private static func points(_ faults: [Scenario.Fault], seed: UInt64 = 1) -> [Scenario.Fault.Point] {
        var scenario = Scenario(name: "f")
        scenario.devices = [.init(name: "A", user: "ada", startsSynced: true, network: [])]
        scenario.faults = faults
        var counters = FaultCounters(scenario, seed: seed)
        return (0..<200).compactMap { _ in counters.requested(by: "A", method: "PUT", row: "n1")?.point }
    }

    @Test func anyPointIsOneAtWhichTheActionIsPossible() {
        let all: Set<Scenario.Fault.Point> = [
            .at(.beforeRequest), .at(.midRequest), .at(.beforeRequestEnd), .at(.beforeResponse),
            .at(.afterResponseHead), .at(.midResponse),
            .at(.afterResponse), .stored,
        ]
        #expect(Set(Self.points([Self.fault(.link(.reset), at: .any)])) == all)
        #expect(Set(Self.points([Self.fault(.kill(device: nil), at: .any)])) == all)
        #expect(Set(Self.points([Self.fault(.link(.stall), at: .any)])) == all.subtracting([.stored]))
        #expect(
            Set(Self.points([Self.fault(.link(.throttle(bytesPerSecond: 1)), at: .any)]))
                == all.subtracting([.at(.afterResponse), .stored]))
        #expect(
            Set(Self.points([Self.fault(.link(.respond(.init(status: 503))), at: .any)]))
                == [.at(.beforeRequest), .at(.midRequest), .at(.beforeRequestEnd), .at(.beforeResponse)])
    }

    @Test func theSeedAndTheFaultAloneDecideOnThePoints() {
        let points = Self.points([Self.fault(.link(.reset), at: .any)])
        #expect(Self.points([Self.fault(.link(.reset), at: .any)]) == points)
        #expect(Self.points([Self.fault(.link(.reset), at: .any)], seed: 2) != points)
        #expect(Self.points([Self.fault(.link(.reset), at: .any), Self.fault(.link(.close), at: .any)]) == points)
    }

    private static func probability(
        _ method: String, _ action: Scenario.Fault.Action = .link(.reset), times: ClosedRange<Int> = 0...1000
    ) -> Scenario.Fault {
        .init(
            request: .init(method: method, row: nil), probability: Probability(partsPerMillion: 300_000), times: times,
            device: nil, point: .at(.beforeResponse), action: action, location: SourceLocation(file: "s.yaml"))
    }

    /// Returns the numbers of the requests to which a fault applies.
    private static func applied(_ fault: Int, of faults: [Scenario.Fault]) -> [Int] {
        var scenario = Scenario(name: "f")
        scenario.devices = [.init(name: "A", user: "ada", startsSynced: true, network: [])]
        scenario.faults = faults
        var counters = FaultCounters(scenario, seed: 1)
        return (0..<200).filter { number in
            counters.requested(by: "A", method: number % 2 == 0 ? "PUT" : "POST", row: "n1")?.fault == fault
        }
    }

    @Test func theRemovalOfAFaultDoesNotChangeTheDrawsOfOthers() {
        let (first, second, third) = (
            Self.probability("PUT"), Self.probability("POST"), Self.probability("POST", .link(.stall))
        )
        let drawn = Self.applied(1, of: [first, second])
        #expect((10...50).contains(drawn.count), "\(drawn)")
        #expect(Self.applied(0, of: [second]) == drawn)
        // A fault of the same requests that comes before another one applies in its place, and shifts no draw.
        let alone = Set(Self.applied(0, of: [third]))
        let hidden = Set(drawn)
        #expect(Set(Self.applied(1, of: [second, third])) == alone.subtracting(hidden))
        #expect(alone != hidden)
        // The number of times that a fault may apply is no part of its name.
        #expect(Self.applied(0, of: [Self.probability("POST", times: 1...3)]) == Array(drawn.prefix(3)))
    }

    @Test func equalFaultsDrawDifferentRequests() {
        let fault = Self.probability("PUT")
        #expect(Self.applied(0, of: [fault, fault]) == Self.applied(0, of: [fault]))
        // With the same draws, the first one would apply in its place each time.
        #expect(!Self.applied(1, of: [fault, fault]).isEmpty)
    }

    @Test func aFaultThatCannotBeIsRefused() {
        var scenario = Scenario(name: "f")
        scenario.faults = [Self.fault(.link(.stall), at: .stored)]
        #expect(throws: ScenarioDirector.PlanError.self) { try ScenarioDirector(scenario) }
    }

    // MARK: Stored

    @Test func aFaultAtStoredFiresAtTheFirstCommitAfterTheResponse() {
        var faults = StoredFaults()
        faults.arm(3, exchange: 7, of: "A")
        #expect(faults.committed("A") == nil, "a commit before the response")
        #expect(faults.responseReceived(7) == nil)
        #expect(faults.committed("B") == nil)
        #expect(faults.committed("A") == .init(fault: 3, exchange: 7))
        #expect(faults.committed("A") == nil)
    }

    @Test func aFaultAtStoredIsMissedIfNothingIsStored() {
        var faults = StoredFaults()
        faults.arm(3, exchange: 7, of: "A")
        #expect(faults.nothingLeft("A") == nil, "the response has not been received")
        #expect(faults.responseReceived(7) == nil)
        #expect(faults.nothingLeft("A") == 3)
        #expect(faults.committed("A") == nil)
        faults.arm(4, exchange: 8, of: "A")
        #expect(faults.failed(8) == 4)
        #expect(faults.responseReceived(8) == nil && faults.committed("A") == nil)
    }

    // MARK: Signalled outages

    private static func signals(_ signalling: Scenario.NetworkEntry.Signalling, seed: UInt64 = 1) -> [Bool] {
        let wifi = ScenarioDirectorTests.wifi
        let device = Scenario.Device(
            name: "A", user: "ada", startsSynced: true,
            network: [
                .init(at: .zero, .hold(wifi), signalling: .always),
                .init(at: .seconds(1), .hold(wifi), signalling: signalling),
            ])
        var state = OutageSignalling()
        return (0..<60).map { index in
            _ = state.update(device, isOutage: false, at: .seconds(2), seed: seed)
            let isSignalled = state.update(device, isOutage: true, at: .seconds(2), seed: seed)
            // A change of conditions within an outage changes nothing.
            #expect(state.update(device, isOutage: true, at: .seconds(3), seed: seed) == isSignalled)
            return isSignalled
        }
    }

    @Test func outagesAreSignalledAlwaysNeverOrSometimes() {
        #expect(Set(Self.signals(.always)) == [true])
        #expect(Set(Self.signals(.never)) == [false])
        let drawn = Self.signals(.sometimes)
        #expect((10...50).contains(drawn.count { $0 }))
        #expect(Self.signals(.sometimes) == drawn)
        #expect(Self.signals(.sometimes, seed: 2) != drawn)
    }

    // MARK: Reactions

    private static func reactions(
        _ condition: StateCondition, by actors: [String] = ["A"], delay: Int64 = 5,
        mix: [Scenario.Workload.Share] = [.init(.resolve, weight: 1)]
    ) -> ReactiveWorkload {
        var scenario = Scenario(name: "r")
        scenario.notes = ["n1", "n2"].map { .init(row: $0, title: nil, text: nil, revision: 1) }
        scenario.devices = ["A", "B"].map { .init(name: $0, user: "ada", startsSynced: true, network: []) }
        scenario.workload = [
            .init(
                trigger: .when(device: "any", condition, delay: .seconds(delay)), actors: actors, notes: nil, mix: mix,
                location: SourceLocation(file: "s.yaml"))
        ]
        return ReactiveWorkload(scenario, seed: 1)
    }

    private static func state(_ icons: [String: History.Icon], outbox: Int = 0) -> History.DeviceState {
        History.DeviceState(
            rows: icons.sorted { $0.key < $1.key }.map {
                .init(name: $0.key, title: nil, text: nil, icon: $0.value, isDeleted: false, kept: [])
            }, outbox: outbox)
    }

    private static let conflict = StateCondition(
        row: nil, checks: [.init(key: .icon, value: "conflict", isNegated: false)])

    @Test func eachNoteTriggersOneActionWhenItsStateBegins() {
        var reactions = Self.reactions(Self.conflict)
        reactions.stateChanged("A", Self.state(["n1": .plain, "n2": .conflict]), at: .seconds(1))
        reactions.stateChanged("A", Self.state(["n1": .conflict, "n2": .conflict]), at: .seconds(2))
        #expect(reactions.nextDeadline == .seconds(6))
        #expect(reactions.takeDue(at: .seconds(5)) == nil)
        let first = reactions.takeDue(at: .seconds(9))
        let second = reactions.takeDue(at: .seconds(9))
        #expect(first?.action.row == "n2" && first?.planned == .seconds(6) && first?.actor == "A")
        #expect(second?.action.row == "n1" && second?.planned == .seconds(7))
        #expect(reactions.takeDue(at: .seconds(9)) == nil && !reactions.hasPlanned)
        // The state still holds: no further action before it has ended and begun again.
        reactions.stateChanged("A", Self.state(["n1": .conflict, "n2": .plain]), at: .seconds(10))
        #expect(!reactions.hasPlanned)
        reactions.stateChanged("A", Self.state(["n1": .conflict, "n2": .conflict]), at: .seconds(11))
        #expect(reactions.nextDeadline == .seconds(16))
    }

    @Test func anActionIsSkippedIfItsStateHasEnded() {
        var reactions = Self.reactions(Self.conflict)
        reactions.stateChanged("A", Self.state(["n1": .conflict]), at: .seconds(1))
        reactions.stateChanged("A", Self.state(["n1": .plain]), at: .seconds(2))
        #expect(reactions.hasPlanned)
        #expect(reactions.takeDue(at: .seconds(6)) == nil && !reactions.hasPlanned)
        reactions.stateChanged("A", Self.state(["n1": .conflict]), at: .seconds(7))
        reactions.cancel()
        #expect(!reactions.hasPlanned)
    }

    @Test func theDeviceItselfReactsIfItIsNamed() {
        let outbox = StateCondition(row: nil, checks: [.init(key: .outbox, value: "2", isNegated: false)])
        var own = Self.reactions(outbox, by: ["A", "B"], mix: [.init(.sync, weight: 1)])
        own.stateChanged("B", Self.state([:], outbox: 2), at: .zero)
        #expect(own.takeDue(at: .seconds(5)) == .init(actor: "B", action: .sync, planned: .seconds(5)))
        var other = Self.reactions(outbox, by: ["A"], mix: [.init(.create, weight: 1)])
        other.stateChanged("B", Self.state([:], outbox: 2), at: .zero)
        other.stateChanged("A", Self.state([:], outbox: 2), at: .zero)
        let rows = [other.takeDue(at: .seconds(5)), other.takeDue(at: .seconds(5))].map { $0?.action.row }
        #expect(rows[0] != nil && rows[0] != rows[1], "each new note has a name of its own")
    }
}
