import Scenario
import Testing
import Wire
import Worlds

@testable import ScenarioRunner

/// A run as an HTTP Archive, as trace events and as a pcapng file.
@Suite struct RunViewTests {
    /// A commit whose response is lost, and its repetition.
    private static let lost =
        Fixture.short + """
            faults: [{ request: PUT n1, point: before-response, then: reset }]
            expect: { finally: { server: { n1: { revision: 2 } } } }

            """

    private static func views(_ text: String) throws -> (
        facts: RunFacts, har: JSONValue, trace: JSONValue, run: FinishedRun
    ) {
        let finished = try Fixture.finished(Fixture.run(text))
        let files = ReportFile.views(of: finished)
        #expect(files.map(\.name) == ["run.har", "trace.json", "wire.pcapng"])
        let facts = RunFacts(try #require(finished.result).history)
        return (
            facts, try #require(JSONText.parse(files[0].bytes)), try #require(JSONText.parse(files[1].bytes)), finished
        )
    }

    @Test func theArchiveHasEachExchangeWithPhasesThatAddUp() throws {
        let (facts, har, _, run) = try Self.views(Self.lost)
        let log = har["log"]
        #expect(log["version"].text == "1.2" && log["pages"].array.map { $0["id"].text } == ["A", "W"])
        let entries = log["entries"].array
        #expect(entries.count == facts.exchanges.count && entries.count >= 3)
        for entry in entries {
            let names = ["blocked", "dns", "connect", "send", "wait", "receive"]
            let phases = names.compactMap { entry["timings"][$0].number }.filter { $0 >= 0 }
            #expect(phases.count >= 3)
            #expect(abs(phases.reduce(0, +) - (entry["time"].number ?? -1)) < 0.000_001)
            #expect(entry["startedDateTime"].text?.hasPrefix("2000-01-01T00:00:0") == true)
            #expect(entry["_device"].text == "A" && entry["pageref"].text == "A")
        }
        let puts = entries.filter { $0["request"]["method"].text == "PUT" }
        #expect(puts.map { $0["response"]["status"].number } == [0, 200])
        #expect(puts.map { $0["_attempt"].number } == [1, 2])
        #expect(
            puts.map { $0["request"]["url"].text } == [
                "http://notes.invalid/notes/n1", "http://notes.invalid/notes/n1",
            ])
        #expect(puts[0]["_error"].text == "200, response lost")
        #expect(puts[0]["_faults"].array.map(\.text) == ["PUT n1 before-response reset"])
        #expect(puts[1]["_error"].text == nil && puts[1]["_faults"].array.isEmpty)
        #expect(try #require(run.result).history.entries.count > entries.count)
    }

    /// The text of a note is in no view, although the page shows it.
    @Test func noViewHasTextsOfNotes() throws {
        let finished = try Fixture.finished(Fixture.run(Self.lost))
        for file in ReportFile.views(of: finished) {
            let text = String(decoding: file.bytes, as: UTF8.self)
            #expect(!text.contains("three") && !text.contains("Milk"), "\(file.name)")
            #expect(text.contains("n1"), "\(file.name)")
        }
    }

    /// Slices of a thread that overlap are not valid; each asynchronous slice begins once and ends once, not earlier.
    @Test func slicesOfAThreadDoNotOverlap() throws {
        let subway = Self.lost.replacing(
            "network: { A: { 0s: wifi } }", with: "network: { A: { 0s: wifi, 100ms: 100-loss, 300ms: edge, 20s: 3g } }")
        let (facts, _, trace, _) = try Self.views(subway)
        let events = trace["traceEvents"].array
        var ends: [String: Double] = [:]
        for event in events where event["ph"].text == "X" {
            let lane = "\(event["pid"].displayText)/\(event["tid"].displayText)"
            let start = try #require(event["ts"].number)
            #expect(start >= ends[lane] ?? 0)
            ends[lane] = start + (event["dur"].number ?? -1)
        }
        #expect(
            events.filter { $0["ph"].text == "X" }.compactMap(\.["name"].text).starts(with: [
                "wifi", "100-loss, interface down", "edge", "3g",
            ]))
        var open: [String: Double] = [:]
        for event in events {
            let id = "\(event["cat"].displayText) \(event["id2"]["local"].displayText)"
            switch event["ph"].text {
            case "b":
                #expect(open[id] == nil)
                open[id] = event["ts"].number
            case "n", "e": #expect(try #require(event["ts"].number) >= open[id] ?? .infinity, "\(id)")
            default: break
            }
        }
        #expect(events.count { $0["ph"].text == "e" } == open.count)
        #expect(open.keys.count { $0.hasPrefix("exchange ") } == facts.exchanges.count)
        let names = events.filter { $0["name"].text == "process_name" }.map { $0["args"]["name"].text }
        #expect(names == ["A", "W", "server"])
    }

    @Test func theCaptureHasARequestAtEachEndThatGotIt() throws {
        let finished = try Fixture.finished(Fixture.run(Self.lost))
        let file = try #require(ReportFile.views(of: finished).last)
        let text = String(decoding: file.bytes, as: UTF8.self)
        // The first attempt and its repetition, each at the device and at the server.
        #expect(text.ranges(of: "PUT /notes/n1 HTTP/1.1\r\n").count == 4)
        // The lost response is at the server only.
        let responses = text.ranges(of: "HTTP/1.1 200 \r\n").count
        let facts = RunFacts(try #require(finished.result).history)
        let expected = facts.exchanges.reduce(0) { $0 + ($1.status == 200 ? 1 : 0) + ($1.serverStatus == 200 ? 1 : 0) }
        #expect(responses == expected && expected % 2 == 1)
        #expect(text.contains(": PUT n1, wifi") && text.contains(": PUT n1, attempt 2"))
        #expect(text.contains("proxy-of-A") && file.bytes.count % 4 == 0)
    }
}
