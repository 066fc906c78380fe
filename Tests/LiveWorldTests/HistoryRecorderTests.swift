import Determinism
import HTTPWire
import ScenarioModel
import SyncClient
import SyncEngine
import Synchronization
import Testing

@testable import LiveWorld

// ScenarioModel has a type of that name too.
private typealias HistoryRecorder = LiveWorld.HistoryRecorder

@Suite struct HistoryRecorderTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        func append(_ line: String) { lines.withLock { $0.append(line) } }
        /// The lines without their times.
        var texts: [String] {
            lines.withLock { $0 }.map { line in
                line.split(separator: " s  ", maxSplits: 1).last.map(String.init) ?? line
            }
        }
    }

    @Test func aHostPauseIsRecordedAndPrinted() {
        let lines = Lines()
        let recorder = HistoryRecorder { lines.append($0) }
        recorder.recordHostPause(.milliseconds(1234))
        #expect(lines.texts == ["the host was paused for 1.2 s"])
        #expect(recorder.history.entries.count == 1)
        guard case .hostPause(.milliseconds(1234))? = recorder.history.entries.first?.event else {
            Issue.record("no host pause in the history")
            return
        }
    }

    @Test func anOutageThatTheDeviceKnowsOfIsPrintedAsInterfaceDown() {
        let lines = Lines()
        let recorder = HistoryRecorder { lines.append($0) }
        recorder.recordNetwork("A", link: "3g", isOnline: true)
        recorder.recordNetwork("A", link: "100-loss", isOnline: false)
        #expect(lines.texts == ["A  network: 3g", "A  network: 100-loss, interface down"])
    }

    @Test func nothingIsRecordedAfterTheEnd() {
        let lines = Lines()
        let recorder = HistoryRecorder { lines.append($0) }
        recorder.begin()
        recorder.record(.mark("first"), line: "mark first")
        recorder.end()
        recorder.record(.mark("second"), line: "mark second")
        #expect(lines.texts == ["mark first"])
        #expect(recorder.history.time(of: "second") == nil)
    }

    @Test func requestsAreNamedAfterTheirNotes() throws {
        let recorder = HistoryRecorder { _ in }
        recorder.assign(row: "n1", to: "0d7d3b4c")
        func subject(_ method: String, _ target: String, _ body: String = "") throws -> String? {
            recorder.subject(try HTTPRequestHead(method: method, target: target), Array(body.utf8))
        }
        #expect(try subject("GET", "/api/notes/0d7d3b4c/") == "n1")
        #expect(try subject("DELETE", "/api/notes/0d7d3b4c/?revision=1-a") == "n1")
        #expect(try subject("POST", "/api/notes/", #"{"uuid":"0d7d3b4c","title":"Milk"}"#) == "n1")
        #expect(try subject("GET", "/api/notes/other/") == nil)
        #expect(try subject("GET", "/api/notes-uuids/") == nil)
    }

    @Test func anExchangeOfAWriterIsAssembled() {
        let lines = Lines()
        let recorder = HistoryRecorder { lines.append($0) }
        recorder.assign(row: "n1", to: "0d7d3b4c")
        recorder.recordWriter("W", .sent(exchange: 0, method: "GET", target: "/api/notes-uuids/"))
        recorder.recordWriter("W", .responded(exchange: 0, status: 200))
        recorder.recordWriter("W", .sent(exchange: 1, method: "PUT", target: "/api/notes/0d7d3b4c/"))
        recorder.recordWriter("W", .responded(exchange: 1, status: 200))
        recorder.recordWriter("W", .sent(exchange: 2, method: "PUT", target: "/api/notes/0d7d3b4c/"))
        recorder.recordWriter("W", .failed(exchange: 2, reason: "timed out"))
        #expect(lines.texts == ["W  PUT n1 -> 200 after 0 ms"], "reads and failures print no line")
        var scenario = Scenario(name: "writers")
        let location = SourceLocation(file: "s.yaml", line: 1, column: 1)
        scenario.expectations = [
            .init(
                .traffic(
                    .init(
                        request: RequestPattern(method: "PUT", row: "n1"), from: "W", seen: .server, between: nil,
                        count: nil, responses: [.status(200), ScenarioModel.Expectation.Traffic.Response.none], same: []
                    )), location: location)
        ]
        #expect(Verdict(scenario, recorder.history).result == .pass)
    }
}
