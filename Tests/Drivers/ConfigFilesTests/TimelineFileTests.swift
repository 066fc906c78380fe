import Determinism
import Foundation
import LinkModel
import TestSupport
import Testing

@testable import ConfigFiles

@Suite struct TimelineFileTests {
    private func problems(_ text: String) -> [String] {
        do {
            _ = try TimelineFile(parsing: text, id: "t", file: "t.yaml")
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    /// Unicode comparison of such keys would take minutes; the size limit is 256 KiB.
    @Test func longRunsOfCombiningMarksAreRejectedWithTheirLocation() {
        let marks = CombiningMarks.of(bytes: 100_000)
        let start = ContinuousClock.now
        #expect(
            problems("timeline: 1\nname: N\n\(marks): 1\n\(marks)x: 1\n")
                == ["t.yaml:3:65: more than 64 combining marks in a row"])
        let escaped = String(repeating: "\\u0315\\\n  \\U00000300", count: 5000)
        #expect(
            problems("timeline: 1\nname: N\n\"\(escaped)\": 1\n")
                == ["t.yaml:35:18: more than 64 combining marks in a row"])
        // Runs as short as in real languages are accepted.
        let word = "e" + String(repeating: "\u{301}", count: 20)
        #expect(problems("timeline: 1\nname: \(word)\nat: { 0s: 3g }\n") == [])
        #expect(ContinuousClock.now - start < .seconds(20))
    }

    @Test func readsStepsRampsAndFlaps() throws {
        let file = try TimelineFile(
            parsing: """
                timeline: 1
                name: All shapes
                grade: judgement
                repeat: 1m
                at:
                  0s: 3g
                  10s: { link: edge }
                  20s: { ramp: { down: { rate: 1 Mbit/s }, up: { rate: 1 Mbit/s, loss: 2 % } }, over: 5s }
                  30s: { flap: [ { lte: 800ms }, { loss100: 200ms } ], jitter: 50 % }
                """, id: "all", file: "all.yaml")
        #expect(file.grade == .judgement)
        #expect(file.timeline.repeatsAfter == .seconds(60))
        #expect(file.timeline.entries.map(\.start) == [.zero, .seconds(10), .seconds(20), .seconds(30)])
        #expect(file.timeline.links.map(\.name) == ["3g", "edge", "as given", "lte", "100-loss"])
        guard case .ramp(let link, over: .seconds(5)) = file.timeline.entries[2].phase else {
            Issue.record("no ramp")
            return
        }
        #expect(link.conditions.up.loss.partsPerMillion == 20_000)
        guard case .flap(let parts, let jitter) = file.timeline.entries[3].phase else {
            Issue.record("no flap")
            return
        }
        #expect(parts.map(\.length) == [.milliseconds(800), .milliseconds(200)])
        #expect(jitter.partsPerMillion == 500_000)
    }

    @Test func anInlineTimelineIsRead() throws {
        let timeline = try TimelineFile(inline: "0s: 3g, 20s: 100-loss, 50s: 3g", source: "--timeline").timeline
        #expect(timeline.entries.map(\.start) == [.zero, .seconds(20), .seconds(50)])
        #expect(try ProfileCatalogue.timeline("{0s: wifi, 1m30s: {ramp: edge, over: 2s}}").timeline.entries.count == 2)
        let error = #expect(throws: FileError.self) {
            try TimelineFile(inline: "0s: 3g, 20s: 6g", source: "--timeline")
        }
        #expect(error?.problems.first?.description.hasPrefix("--timeline:1:14: no profile is called '6g'") == true)
    }

    /// Blanks are optional: each text is the same timeline.
    @Test(arguments: [
        "0s:3g,20s:100-loss,1m30s:{ramp:edge,over:2s},2m:{flap:[{lte:800ms},{loss100:200ms}],jitter:50%}",
        "{0s:3g,20s:100-loss,1m30s:{ramp:edge,over:2s},2m:{flap:[{lte:800ms},{loss100:200ms}],jitter:50%}}",
        " 0s :3g ,20s:100-loss,\n1m30s:{ramp:edge,over:2s}, 2m: {flap:[lte:800ms,loss100:200ms],jitter:50%}",
        "0s: 3g, 20s: 100-loss, 1m30s: {ramp: edge, over: 2s}, 2m: {flap: [{lte: 800ms}, {loss100: 200ms}], jitter: 50%}",
        "\"0s\":\"3g\",'20s':100-loss,1m30s:{\"ramp\":\"edge\",over:2s},2m:{flap:[{lte:800ms},{loss100:200ms}],jitter:50%}",
    ]) func anInlineTimelineNeedsNoSpaces(_ text: String) throws {
        let timeline = try ProfileCatalogue.timeline(text).timeline
        #expect(timeline.entries.map(\.start) == [.zero, .seconds(20), .seconds(90), .seconds(120)])
        #expect(timeline.links.map(\.name) == ["3g", "100-loss", "edge", "lte", "100-loss"])
    }

    /// Errors point at the text as it was written.
    @Test(arguments: [
        ("0s:3g,20s:6g", "t:1:11: no profile is called '6g'"),
        ("{0s:3g,20s:6g}", "t:1:12: no profile is called '6g'"),
        ("0s:3g,\n20s:{ramp:edge,over:2x}", "t:2:21: unknown unit 'x'"),
        ("0s:3g,10s:wifi,20s:{down:{rate:5 MB/s},up:{}}", "t:1:32: 'down.rate'"),
    ]) func anErrorInATimelineWithoutSpacesHasItsLocation(_ text: String, _ problem: String) {
        let error = #expect(throws: FileError.self) { try TimelineFile(inline: text, source: "t") }
        #expect(error?.problems.first?.description.hasPrefix(problem) == true, "\(error?.description ?? "")")
    }

    @Test func aPathInAnInlineTimelineDoesNotNameATimelineFile() {
        let error = #expect(throws: ProfileCatalogue.LookupError.self) {
            try ProfileCatalogue.timeline("0s:./no-such-profile.yaml,20s:3g")
        }
        #expect(error?.description.hasPrefix("timeline:1:4: cannot read ./no-such-profile.yaml") == true)
    }

    @Test(arguments: ["Subway", "SUBWAY", "3G-Moving"]) func theCaseOfATimelineNameDoesNotMatter(_ name: String) throws
    {
        #expect(try ProfileCatalogue.timeline(name).id == name.lowercased())
        guard case .timeline = try ProfileCatalogue.profileOrTimeline(name) else {
            Issue.record("\(name) is not a timeline")
            return
        }
    }

    @Test func everyMistakeHasItsLocation() {
        let text = """
            timeline: 1
            name: Wrong
            at:
              0s: wif
              10: 3g
              20s: { ramp: 3g }
              30s: { flap: [ 3g, edge ] }
              40s: { flap: [ { 3g: 1s } ], jitter: 150 % }
              50s: { down: { rate: 5 MB/s } }
              1m5h: 3g
              2m: { ramp: 3g, over: 5s, by: 3 }
            """
        let found = problems(text)
        let expected = [
            "t.yaml:4:7: no profile is called 'wif'; did you mean 'wifi'",
            "t.yaml:5:3: '10' has no unit",
            "t.yaml:6:8: 'ramp' needs 'over'",
            "t.yaml:7:18: 'flap': expected a list of links with durations",
            "t.yaml:8:40: 'jitter': '150 %' is out of range",
            "t.yaml:9:8: 'up' is missing",
            "t.yaml:9:24: 'down.rate': '5 MB/s' counts bytes per second",
            "t.yaml:10:3: '1m5h' is out of range",
            "t.yaml:11:29: unknown key 'by' in 'ramp'",
        ]
        #expect(found.count == expected.count, "\(found)")
        for (found, expected) in zip(found, expected) { #expect(found.hasPrefix(expected), "\(found)") }
    }

    @Test func aTimelineThatGoesBackInTimeIsRejectedAtItsLocation() {
        let found = problems("timeline: 1\nname: Back\nat:\n  0s: 3g\n  30s: edge\n  20s: 3g\n")
        #expect(found.count == 1 && found[0].hasPrefix("t.yaml:6:3: "), "\(found)")
        let overlapping = problems(
            "timeline: 1\nname: Ramp\nat:\n  0s: 3g\n  30s: { ramp: edge, over: 1m }\n  40s: 3g\n")
        #expect(overlapping.count == 1 && overlapping[0].hasPrefix("t.yaml:5:3: "), "\(overlapping)")
        let short = problems("timeline: 1\nname: R\nrepeat: 5s\nat:\n  0s: 3g\n  30s: edge\n")
        #expect(short.count == 1 && short[0].hasPrefix("t.yaml:3:9: "), "\(short)")
    }

    @Test func theBuiltInTimelinesAreGradedAsJudgement() {
        #expect(ProfileCatalogue.timelines.map(\.id) == ["3g-moving", "subway", "train", "elevator"])
        #expect(ProfileCatalogue.timelines.allSatisfy { $0.grade == .judgement })
        let notAProfile = #expect(throws: ProfileCatalogue.LookupError.self) { try ProfileCatalogue.profile("subway") }
        #expect(notAProfile?.description.contains("is a timeline, not a profile") == true)
        let unknown = #expect(throws: ProfileCatalogue.LookupError.self) { try ProfileCatalogue.timeline("subwya") }
        #expect(unknown?.description.contains("did you mean 'subway'") == true)
    }
}

@Suite struct TraceFileTests {
    private func read(_ text: String) -> Result<DeliveryTrace, FileError> {
        Result { () throws(FileError) in try TraceFile.parse(.init(text.utf8), file: "cell.trace") }
    }

    @Test func readsTheFormatOfMahimahi() throws {
        #expect(try read("0\n5\n5\r\n\n 12 \n").get() == DeliveryTrace(milliseconds: [0, 5, 5, 12]))
    }

    @Test(arguments: [
        ("", "cell.trace: no opportunity"), ("0\n0\n", "cell.trace: no opportunity"),
        ("5\n4\n", "cell.trace:2:1: 4 is earlier than 5 on the line before"),
        ("5\nsix\n", "cell.trace:2:1: expected a whole number"), ("1.5\n", "cell.trace:1:1: expected a whole"),
        ("-1\n", "cell.trace:1:1: expected a whole"), ("1 2\n", "cell.trace:1:1: expected a whole"),
        ("99999999999999999999999\n", "cell.trace:1:1: expected a whole"),
        ("86400001", "cell.trace:1:1: expected a whole number of milliseconds, 0 to 86400000"),
        ("\0\u{1}", "cell.trace:1:1: expected a whole"),
    ]) func rejectsOtherTextsWithTheirLine(_ text: String, _ message: String) {
        guard case .failure(let error) = read(text) else {
            Issue.record("accepted: \(text)")
            return
        }
        #expect(error.description.hasPrefix(message), "\(error)")
    }

    @Test func aTraceIsRelativeToItsProfile() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "slowlane-\(UInt64.random(in: 0...(.max)))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data("3\n9\n10\n".utf8).write(to: folder.appendingPathComponent("cell.trace"))
        try Data("9\n3\n".utf8).write(to: folder.appendingPathComponent("back.trace"))
        func profile(_ down: String) throws -> Profile {
            let path = folder.appendingPathComponent("p.yaml").path
            try Data("profile: 1\nname: T\nup: {}\ndown:\n\(down)\n".utf8).write(to: URL(fileURLWithPath: path))
            return try ProfileCatalogue.profile(path)
        }
        let conditions = try profile(
            "  trace: ./cell.trace\n  jitter: 20 ms pareto overtaking\n  queue: 64 KB\n  bursts: timed 20s 800ms\n"
                + "  lose-packets: 3, 7-9\n  duplicate: 1 %\n  reorder: 0.5 %"
        ).conditions.down
        #expect(conditions.trace == (try DeliveryTrace(milliseconds: [3, 9, 10])))
        #expect(conditions.jitter == Jitter(span: .milliseconds(20), distribution: .pareto, mayOvertake: true))
        #expect(conditions.queue == .bytes(64_000))
        #expect(conditions.lostPackets == PacketNumbers([3...3, 7...9]))
        #expect(conditions.reordering.partsPerMillion == 5000)
        for (text, message) in [
            ("  trace: ./back.trace", "back.trace:2:1: 3 is earlier than 9"),
            ("  trace: ./none.trace", "none.trace: cannot read the trace: no such file"),
            ("  trace: ./cell.trace\n  rate: 1 Mbit/s", "expected either a trace or a rate"),
            ("  reorder: 5 %", "needs a delay that packets can skip"),
            ("  jitter: 20 ms sideways", "unknown unit 'ms sideways'"),
            ("  bursts: gemodel", "needs a value"),
            ("  bursts: 5 %", "such as 'gemodel 1% 25% 70% 0%'"),
            ("  lose-packets: 3-1", "'3-1' is not a packet number"),
            ("  lose-packets: 0", "within 1 to"),
            ("  queue: 0 B", "'0 B' is out of range"),
        ] {
            let error = #expect(throws: ProfileCatalogue.LookupError.self, "\(text)") { try profile(text) }
            #expect(error?.description.contains(message) == true, "\(error?.description ?? text)")
        }
    }
}
