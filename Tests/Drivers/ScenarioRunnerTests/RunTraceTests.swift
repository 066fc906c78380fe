import Determinism
import Impairment
import LinkModel
import Scenario
import Testing

@testable import ScenarioRunner

@Suite struct RunTraceTests {
    /// The documented format.
    @Test(
        arguments: [
            (.phase(.script), "phase phase=script"),
            (
                .network(device: "A", link: "my 3g.yaml", isOnline: false),
                "network actor=A link=\"my 3g.yaml\" interface=down"
            ),
            (.connectionAttempt(4, device: "A"), "connect actor=A connection=4"),
            (
                .request(7, actor: "A", method: "PUT", row: "n1", key: "k", bodyDigest: 0xAB, connection: 4),
                "request exchange=7 actor=A method=PUT note=n1 body=00000000000000ab key=k connection=4"
            ),
            (
                .request(8, actor: "W", method: "GET", row: nil, key: nil, bodyDigest: 0),
                "request exchange=8 actor=W method=GET note=- body=0000000000000000"
            ),
            (.named(7, row: "n\n1"), "named exchange=7 note=\"n 1\""), (.arrived(7), "arrived exchange=7"),
            (.serverResponded(7, status: 201), "responded exchange=7 status=201 bytes=0"),
            (
                .serverResponded(7, status: 200, bytes: 9, revision: 2),
                "responded exchange=7 status=200 bytes=9 revision=2"
            ),
            (.requestSent(7, bytes: 9), "sent exchange=7 bytes=9"),
            (.responseReceived(7, status: 201), "received exchange=7 status=201"), (.failed(7), "failed exchange=7"),
            (.fault(index: 0, exchange: 7), "fault fault=0 exchange=7"),
            (
                .fault(index: 0, exchange: 7, point: .at(.beforeRequestEnd)),
                "fault fault=0 exchange=7 point=before-request-end"
            ),
            (.commit(device: "A", digest: 1), "commit actor=A digest=0000000000000001"),
            (.accepted(device: "A", row: "n1"), "accepted actor=A note=n1"),
            (
                .belief(device: "A", .unreachable(failures: 3)),
                #"belief actor=A connectivity="unreachable(failures: 3)""#
            ),
            (.started(device: "A"), "started actor=A"), (.stopped(device: "A"), "stopped actor=A"),
            (.step(2), "step step=2"), (.mark("shown"), "mark mark=shown"),
            (.missed(step: 2, .other("too late")), "missed step=2 reason=\"too late\""),
            (
                .stepFailed(2, .notRunning("A"), at: SourceLocation(file: "s.yaml", line: 3, column: 5)),
                #"step-failed step=2 reason="s.yaml:3:5: A is not running""#
            ),
            (.late(.milliseconds(12)), "late seconds=0.012000000"),
            (.hostPause(.seconds(2)), "host-pause seconds=2.000000000"),
            (.action(actor: "A", .kill), "action actor=A action=\"is killed\""),
            (.notice(actor: "A", .usesInterface(.cellular)), "action actor=A action=\"uses cellular\""),
            (
                .contents(
                    7,
                    RequestContents(
                        account: .user("ada"), base: .init("2-ab"),
                        body: .note(title: nil, text: RequestContents.digest("")))),
                "contents exchange=7 account=ada base=2:92f57d6b note=-:84222325"
            ),
            (
                .contents(7, RequestContents(account: .token(1), isConditional: true)),
                "contents exchange=7 token=1 conditional=yes"
            ),
            (.interface(device: "A", isUp: false, isMetered: true), "interface actor=A state=down metered=yes"),
            (.world(.init(isSimulated: true, comparesBytes: false)), "world kind=simulated bytes=unknown"),
            (
                .policy(device: "A", ClientPolicy(poll: .seconds(60))),
                "policy actor=A first=1.000000000 longest=60.000000000 poll=60.000000000"
            ),
            (
                .writeResult(7, WriteResult(target: 1, isReplayed: true, record: 2)),
                "result exchange=7 target=0000000000000001 replayed=yes record=0000000000000002"
            ),
            (.bytesChanged(device: "A", .down, offset: 9), "changed actor=A direction=down offset=9"),
            (.aborted(.other("over \"limit\"")), "aborted reason=\"over \\\"limit\\\"\""),
            (
                .device(
                    "A",
                    .init(
                        rows: [
                            .init(name: "n1", title: nil, text: "", icon: .upload, isDeleted: true, kept: ["", ""])
                        ],
                        outbox: 1)),
                "view actor=A outbox=1 note=n1:upload/deleted:-:84222325:84222325/84222325"
            ),
            (
                .server([.init(user: "ada", name: "n1", revision: 3, title: "", text: nil)]),
                "server note=ada:n1:3:84222325:-"
            ),
        ] as [(History.Event, String)])
    func anEventIsOneLine(_ event: History.Event, line: String) {
        var history = History()
        history.append(event, at: Nanoseconds(61_000_000_007))
        #expect(RunTrace.line(history.entries[0]) == "61.000000007 \(line)")
    }

    @Test func aTraceBeginsWithTheRunAndEndsWithItsResult() throws {
        let run = try Fixture.run(Fixture.short + "expect: { finally: { server: { count: 1 } } }", seed: 5)
        let summary = try Fixture.summary(run, isTraced: true)
        #expect(summary.trace.first == "run scenario=short variant=none seed=5 world=simulated")
        #expect(summary.trace[1] == "0.000000000 phase phase=script")
        let digest = try #require(summary.digest)
        #expect(summary.trace.last == "end result=pass digest=\(digest) events=\(summary.eventCount)")
        #expect(summary.trace.count > 20)
        #expect(try Fixture.summary(run).trace.isEmpty)
    }
}
