import Determinism
import Impairment
import Testing

@testable import Scenario

@Suite struct HistoryRecorderTests {
    private static func recorder(at start: Instant = .start) -> HistoryRecorder {
        var recorder = HistoryRecorder()
        recorder.record(.phase(.script), at: start)
        return recorder
    }

    private static func descriptions(_ recorder: HistoryRecorder) -> [String] {
        recorder.history.entries.map { "\($0.time.inMilliseconds) \($0.event)" }
    }

    @Test func recordingBeginsWithTheScriptAndEndsWithTheRun() {
        var recorder = HistoryRecorder()
        let isBefore = recorder.record(.mark("setup"), at: Instant(.seconds(1)))
        recorder.record(.phase(.script), at: Instant(.seconds(3)))
        recorder.record(.mark("first"), at: Instant(.milliseconds(3500)))
        recorder.record(.phase(.ended), at: Instant(.seconds(4)))
        let isAfter = recorder.record(.mark("second"), at: Instant(.seconds(5)))
        #expect(!isBefore && !isAfter)
        #expect(Self.descriptions(recorder) == ["0.0 phase script", "500.0 mark first", "1000.0 phase ended"])
    }

    @Test func theDigestCoversTimeKindAndValuesOfEveryEvent() {
        func digest(_ events: [(Int64, History.Event)]) -> UInt64 {
            var recorder = Self.recorder()
            for (time, event) in events { recorder.record(event, at: Instant(.milliseconds(time))) }
            return recorder.history.digest
        }
        let plain = digest([(1, .mark("a")), (2, .mark("b"))])
        #expect(plain == digest([(1, .mark("a")), (2, .mark("b"))]))
        // The same in every process.
        #expect(plain == 5_865_156_151_932_259_889)
        let others: [[(Int64, History.Event)]] = [
            [(1, .mark("a")), (3, .mark("b"))], [(1, .mark("a")), (2, .mark("c"))], [(1, .mark("a"))],
            [(1, .mark("a")), (2, .started(device: "b"))], [(1, .mark("b")), (2, .mark("a"))],
            [(1, .mark("ab")), (2, .mark(""))], [(1, .mark("a")), (2, .stopped(device: "b"))],
        ]
        #expect(Set(others.map(digest) + [plain]).count == others.count + 1)
    }

    /// Every value of an event is part of its encoding.
    @Test func differentEventsHaveDifferentEncodings() {
        func state(
            _ name: String = "n1", title: String? = nil, text: String? = nil, icon: History.Icon = .plain,
            isDeleted: Bool = false, kept: [String] = [], outbox: Int = 0
        ) -> History.Event {
            .device(
                "A",
                .init(
                    rows: [
                        .init(name: name, title: title, text: text, icon: icon, isDeleted: isDeleted, kept: kept)
                    ], outbox: outbox))
        }
        func request(
            _ id: Int = 0, actor: String = "A", method: String = "GET", row: String? = nil, key: String? = nil,
            digest: UInt64 = 0, connection: Int? = nil
        ) -> History.Event {
            .request(
                id, actor: actor, method: method, row: row, key: key, bodyDigest: digest, connection: connection)
        }
        func server(revision: Int = 1, title: String? = nil, text: String? = nil) -> History.Event {
            .server([.init(user: "ada", name: "n1", revision: revision, title: title, text: text)])
        }
        func failed(_ step: Int, _ reason: String) -> History.Event {
            .stepFailed(step, .other(reason), at: SourceLocation(file: "s.yaml"))
        }
        let actions: [Scenario.Action] = [
            .create(row: "n1"), .create(row: "n2"), .create(row: "n1", title: "x"), .create(row: "n1", text: "x"),
            .edit(row: "n1"), .edit(row: "n1", text: "x"), .delete(row: "n1"), .resolve(row: "n1"),
            .resolve(row: "n1", text: "x"), .choose(row: "n1", .mine), .choose(row: "n1", .theirs),
            .choose(row: "n1", .delete), .editStale(row: "n1"), .deleteStale(row: "n1"), .keep(row: "n1"),
            .pin(row: "n1"), .open(row: nil), .open(row: "n1"), .sync, .send(.init(method: "GET", path: "/")),
            .send(.init(method: "PUT", path: "/")), .send(.init(method: "GET", path: "/a")),
            .send(.init(method: "GET", path: "/", headers: [.init(name: "a", value: "b")])),
            .send(.init(method: "GET", path: "/", body: "x")), .kill, .start, .upgrade(version: 1),
            .upgrade(version: 2),
            .clock(shift: .seconds(1)), .clock(shift: .seconds(2)), .call(name: "a", arguments: []),
            .call(name: "b", arguments: []), .call(name: "a", arguments: [.init(name: "a", value: "b")]),
        ]
        let others: [History.Event] = [
            .action(actor: "B", .sync), .network(device: "A", link: "3g", isOnline: true),
            .network(device: "A", link: "3g", isOnline: false),
            .network(device: "A", link: "2g", isOnline: true), .network(device: "B", link: "3g", isOnline: true),
            state(), state("n2"), state(title: "x"), state(text: "x"), state(text: ""), state(icon: .upload),
            state(isDeleted: true), state(kept: ["x"]), state(kept: ["x", "y"]), state(kept: ["xy"]),
            state(outbox: 1),
            .device("A", .init(rows: [], outbox: 0)), .connectionAttempt(0, device: "A"),
            .connectionAttempt(1, device: "A"), .connectionAttempt(0, device: "B"),
            .connectionEnded(0, device: "A"),
            .connectionEnded(1, device: "A"), .connectionEnded(0, device: "B"), request(), request(1),
            request(actor: "B"), request(method: "PUT"), request(row: "n1"), request(key: "n1"), request(digest: 1),
            request(connection: 0), request(connection: 1), .named(0, row: "n1"), .named(1, row: "n1"),
            .named(0, row: "n2"), .arrived(0), .arrived(1), .serverResponded(0, status: 200),
            .serverResponded(0, status: 200, bytes: 1), .serverResponded(0, status: 200, revision: 1),
            .requestSent(0, bytes: 1),
            .requestSent(1, bytes: 1), .requestSent(0, bytes: 2),
            .fault(index: 0, exchange: 0, point: .at(.beforeRequestEnd)),
            .serverResponded(1, status: 200), .serverResponded(0, status: 409), .responseReceived(0, status: 200),
            .responseReceived(1, status: 200), .responseReceived(0, status: 409), .failed(0), .failed(1),
            .fault(index: 0, exchange: 0, point: .at(.beforeRequest)),
            .fault(index: 1, exchange: 0, point: .at(.beforeRequest)),
            .fault(index: 0, exchange: 1, point: .at(.beforeRequest)), .fault(index: 0, exchange: 0, point: .stored),
            .commit(device: "A", digest: 0), .commit(device: "A", digest: 1), .commit(device: "B", digest: 0),
            .accepted(device: "A", row: "n1"), .accepted(device: "B", row: "n1"), .accepted(device: "A", row: "n2"),
            .belief(device: "A", .online), .belief(device: "B", .online), .belief(device: "A", .unknown),
            .belief(device: "A", .suspected), .belief(device: "A", .interfaceDown),
            .belief(device: "A", .interfaceNotAllowed), .belief(device: "A", .unreachable(failures: nil)),
            .belief(device: "A", .unreachable(failures: 1)), .belief(device: "A", .unreachable(failures: 2)),
            .started(device: "A"), .started(device: "B"), .stopped(device: "A"), .stopped(device: "B"),
            .phase(.script), .phase(.restore), .step(0), .step(1), .mark("a"), .mark("b"),
            .missed(step: 0, .other("a")),
            .missed(step: 1, .other("a")), .missed(step: 0, .other("b")), failed(0, "a"), failed(1, "a"),
            failed(0, "b"),
            .missed(step: 0, .markNotSet("a")), .missed(step: 0, .notRunning("a")),
            .missed(step: 0, .killed("A", .waiting)),
            .missed(step: 0, .killed("A", .started)), .missed(step: 0, .scriptEnded(.planned)),
            .aborted(.limitExceeded(.seconds(1))), .aborted(.limitExceeded(.seconds(2))),
            .aborted(.notConverged("A", within: nil)), .aborted(.notConverged("A", within: .seconds(1))),
            .aborted(.notConverged("B", within: nil)), .aborted(.tooManyEvents(1, isAtOneTime: true)),
            .aborted(.tooManyEvents(1, isAtOneTime: false)), .aborted(.nothingScheduled),
            .aborted(.tooManyAttempts("A", count: 1, within: .seconds(1))),
            .late(.seconds(1)), .late(.seconds(2)), .notice(actor: "A", .notHTTP("a")),
            .notice(actor: "B", .notHTTP("a")), .notice(actor: "A", .notHTTP("b")),
            .notice(actor: "A", .restoresLinks),
            .notice(actor: "A", .usesInterface(.cellular)), .notice(actor: "A", .usesInterface(.wifi)),
            .notice(actor: "A", .skipped(.other("a"))), .notice(actor: "A", .reactionImpossible(.other("a"))),
            .notice(actor: "A", .storeRefused(version: 1, store: 2)), .server([]), server(), server(revision: 2),
            server(title: "x"), server(text: "x"), .hostPause(.seconds(1)), .hostPause(.seconds(2)),
            .aborted(.other("a")),
            .aborted(.other("b")),
        ]
        let events = actions.map { History.Event.action(actor: "A", $0) } + others
        var encodings: Set<[UInt8]> = []
        for event in events {
            var encoder = EventEncoder()
            event.encode(into: &encoder)
            #expect(encodings.insert(encoder.bytes).inserted, "\(event)")
        }
    }

    /// Another name of a phase, a fault point, an action or a reason changes no digest.
    @Test func encodingsHaveNumbersInPlaceOfNames() {
        let phases = ScenarioDirector.Phase.allCases.map { (History.Event.phase($0), $0.rawValue) }
        let points = Scenario.Fault.Point.allCases.map {
            (History.Event.fault(index: 0, exchange: 0, point: $0), $0.rawValue)
        }
        let others: [(History.Event, String)] = [
            (.action(actor: "A", .edit(row: "n1")), "edits"), (.action(actor: "A", .kill), "killed"),
            (.belief(device: "A", .online), "online"), (.notice(actor: "A", .usesInterface(.wifi)), "wifi"),
            (.missed(step: 0, .markNotSet("m")), "never"), (.aborted(.limitExceeded(.seconds(1))), "exceeded"),
        ]
        for (event, name) in phases + points + others {
            var encoder = EventEncoder()
            event.encode(into: &encoder)
            #expect(event.description.contains(name))
            #expect(!String(decoding: encoder.bytes, as: UTF8.self).contains(name), "\(event)")
        }
    }

    @Test func theFirstDifferenceOfTwoHistoriesIsFound() {
        var left = Self.recorder()
        left.record(.mark("a"), at: .start)
        var right = left
        #expect(left.history.firstDifference(from: right.history) == nil)
        left.record(.mark("b"), at: .start)
        #expect(left.history.firstDifference(from: right.history) == 2)
        right.record(.mark("c"), at: .start)
        #expect(left.history.firstDifference(from: right.history) == 2)
    }

    @Test func requestsAndRowsAreNamedAfterTheirNotes() {
        var recorder = Self.recorder()
        _ = recorder.assign(row: "n1", to: Array("0d7d3b4c-1".utf8))
        let first = recorder.request(
            0, of: "A", method: "PUT", record: Array("0d7d3b4c-1".utf8), key: "k", bodyDigest: 7, connection: 0)
        #expect(first.description == "A request 0 PUT n1, connection 0")
        // The note gets its name after the request: it was restored under a new identifier.
        let second = recorder.request(
            1, of: "A", method: "POST", record: Array("99aa99aa-2".utf8), key: nil, bodyDigest: 0)
        #expect(second.description == "A request 1 POST ?")
        let view = recorder.view(
            [.init(record: Array("99aa99aa-2".utf8), title: nil, text: "x", icon: .plain)], outbox: 0, of: "A")
        #expect(view?.description == "A view outbox 0 99aa99aa=none")
        let named = recorder.assign(row: "n1", to: Array("99aa99aa-2".utf8))
        #expect(named.map(\.description) == ["request 1 is of n1"])
        let again = recorder.assign(row: "n1", to: Array("99aa99aa-2".utf8))
        #expect(again.isEmpty)
        #expect(recorder.record(of: "n1") == Array("99aa99aa-2".utf8))
        #expect(recorder.row(of: Array("0d7d3b4c-1".utf8)) == "n1")
        for event in [first, second] + named { recorder.record(event, at: .start) }
        #expect(recorder.history.exchanges().map(\.row) == ["n1", "n1"])
    }

    @Test func anUnchangedViewIsNoEvent() {
        var recorder = Self.recorder()
        let row = HistoryRecorder.Row(record: Array("a".utf8), title: nil, text: "x", icon: .plain)
        let events = [("A", 0), ("A", 0), ("B", 0), ("A", 1)].map { recorder.view([row], outbox: $0.1, of: $0.0) }
        #expect(events.map { $0 != nil } == [true, false, true, true])
    }

    @Test func numbersAreThoseOfTheRun() {
        var recorder = HistoryRecorder()
        let exchanges = [(5, "A"), (5, "B"), (5, "A")].map { recorder.exchange($0.0, of: $0.1) }
        #expect(exchanges == [0, 1, 0])
        let connections = [5, 6].map { recorder.connection($0, of: "A") }
        #expect(connections == [0, 1])
    }
}
