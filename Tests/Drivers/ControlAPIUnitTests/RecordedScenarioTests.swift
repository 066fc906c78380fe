import ConfigFiles
import Determinism
import Foundation
import LinkModel
import Scenario
import TestSupport
import Testing
import Wire

@testable import ControlAPI
@testable import Impairment

/// Recordings with names, paths and responses that YAML could misread.
@Suite(.timeLimit(.minutes(20))) struct RecordedScenarioTests {
    private static let pieces: [String] = [
        "\u{2028}", "\u{2029}", "\u{FFFE}", "\u{FFFF}", "\u{FEFF}", "\u{85}", "\u{0}", "\u{1}", "\u{1B}", "\u{7F}",
        "\u{9F}", "\u{A0}", "\u{1FFFE}", "\u{10FFFF}", "\u{E000}", "\n", "\r", "\r\n", "\t", "\"", "'", "\\", ": ",
        " #",
        "- ", "{", "}", "[", "]", ", ", "&a", "*a", "!", "|", ">", "%", "@", "`", "?", "é", "e\u{301}", "😀", "a", "No",
        "null", "~", "0x1f", "\u{2028}limit: 1s", "\nserver: {}", "1e3", " ", "---", "...", "yes", "<<", "=",
    ]

    private static func text(_ random: inout RandomStream) -> String {
        (0...random.integer(below: 8)).map { _ in pieces[Int(random.integer(below: Int64(pieces.count)))] }.joined()
    }

    /// A recording, and the responses that its scenario must have.
    private static func recording(_ seed: UInt64) -> (
        yaml: String?, replies: [FaultResponse], names: [String]
    ) {
        var random = RandomStream(seed: seed, "recording")
        var recording = LinkRecording(at: 0)
        var replies: [FaultResponse] = []
        var names: [String] = []
        for number in 0...random.integer(below: 3) {
            names.append(number == 0 ? text(&random) : text(&random) + "\(number)")
            var proxy = ManagedProxy(name: names.last ?? "", listen: "", upstream: "", link: nil, seed: 1)
            for index in 0..<Int(random.integer(below: 4)) {
                let reply = FaultResponse(
                    status: 503, fields: [.init("X-\(index)", text(&random)), .init("yes", "no")],
                    body: Array(text(&random).utf8))
                let rule = FaultRule(
                    method: "GET", path: text(&random), point: .beforeResponse, action: .respond(reply))
                if rule.problem != nil { continue }
                proxy.faults.append(StoredFault(rule, number: index, names: proxy.faults.map(\.name)))
                let body = String(decoding: reply.body, as: UTF8.self)
                let values = [body] + reply.fields.map(\.value)
                // The scenario cannot contain these; the recording names the fault in a comment.
                if reply.fields.contains(where: { $0.value.utf8.contains { $0 < 0x20 || $0 == 0x7F } }) { continue }
                if values.contains(where: { $0.unicodeScalars.contains("\0") || $0.unicodeScalars.first == "\u{FEFF}" })
                {
                    continue
                }
                replies.append(reply)
            }
            recording.record(proxy, nil, at: 0)
        }
        recording.end(at: 1_000_000_000)
        return (recording.yaml(at: 0), replies, names)
    }

    @Test func hostileNamesAndResponsesAreReadBackByThisReaderAndByPyYAML() async throws {
        let recordings = randomSeeds(150).map(Self.recording)
        let folder = try TemporaryFolder()
        for (index, recording) in recordings.enumerated() {
            let yaml = try #require(recording.yaml)
            try Data(yaml.utf8).write(to: folder.url.appending(path: "\(index).yaml"))
            // The comments at the beginning have one line each, for every reader.
            let lines = yaml.split(whereSeparator: \.isNewline)
            #expect(lines.filter { $0.contains("is the proxy '") }.count == recording.names.count)
            let problems = ScenarioFile.problems(in: yaml, file: "recorded.yaml").filter { $0.severity != .warning }
            #expect(problems.isEmpty, "\(problems)\n\(yaml)")
            let scenario = try ScenarioFile(parsing: yaml, file: "recorded.yaml").scenario
            #expect(scenario.limit == .seconds(601) && scenario.devices.count == recording.names.count)
            let read = scenario.faults.map(\.action.response)
            #expect(read.count == recording.replies.count)
            for (read, expected) in zip(read, recording.replies) {
                #expect(Self.bytes(try #require(read)) == Self.bytes(expected), "\(yaml)")
            }
        }
        let script = """
            import glob, json, sys, yaml
            files = [f"{sys.argv[1]}/{i}.yaml" for i in range(int(sys.argv[2]))]
            print(json.dumps([yaml.safe_load(open(name, encoding="utf-8", newline="")) for name in files]))
            """
        let (status, output) = try await runPython(
            "python", ["-c", script, folder.url.path, "\(recordings.count)"])
        #expect(status == 0, "\(output.suffix(500))")
        let documents = try #require(JSONText.parse(Array(output.utf8))).array
        #expect(documents.count == recordings.count)
        for (document, recording) in zip(documents, recordings) {
            let known: Set<String> = [
                "scenario", "name", "about", "limit", "server", "devices", "network", "faults", "steps", "expect",
            ]
            let keys = try #require(document.object?.keys)
            #expect(known.isSuperset(of: keys), "\(keys)")
            #expect(document["limit"].text == "10m1s" && document["devices"].object?.count == recording.names.count)
            #expect(document["network"].object?.keys == document["devices"].object?.keys)
            let replies = document["faults"].array.map { $0["then"]["respond"] }
            #expect(replies.count == recording.replies.count)
            for (reply, expected) in zip(replies, recording.replies) {
                #expect(Array((reply["body"].text ?? "").utf8) == expected.body)
                for header in expected.fields {
                    let value = try #require(reply["headers"][header.name].text)
                    #expect(value.hasSameBytes(as: header.value))
                }
            }
        }
    }

    private static func bytes(_ reply: FaultResponse) -> [[UInt8]] {
        [reply.body] + reply.fields.flatMap { [Array($0.name.utf8), Array($0.value.utf8)] }
    }

    @Test func aProxyWithTheNameOfATruthValueIsADevice() throws {
        var recording = LinkRecording(at: 0)
        for name in ["no", "ON", "null", "y"] {
            recording.record(ManagedProxy(name: name, listen: "", upstream: "", link: nil, seed: 1), nil, at: 0)
        }
        let yaml = try #require(recording.yaml(at: 1_000_000_000))
        let scenario = try ScenarioFile(parsing: yaml, file: "recorded.yaml").scenario
        #expect(scenario.devices.map(\.name) == ["PNo", "PON", "PNull", "PY"])
    }

    @Test func aResponseThatYAMLCannotContainIsNamedInAComment() throws {
        var recording = LinkRecording(at: 0)
        var proxy = ManagedProxy(name: "p", listen: "", upstream: "", link: nil, seed: 1)
        let replies = [
            FaultResponse(status: 503, fields: [.init("Set-Cookie", "a"), .init("set-cookie", "b")]),
            FaultResponse(status: 503, fields: [.init(String(repeating: "x", count: 1100), "a")]),
            FaultResponse(status: 503, body: [0xFF]),
            FaultResponse(status: 503, body: Array(("a" + String(repeating: "\u{301}", count: 100)).utf8)),
        ]
        for (index, reply) in replies.enumerated() {
            let rule = FaultRule(method: "GET", action: .respond(reply))
            proxy.faults.append(StoredFault(rule, number: index, names: []))
        }
        recording.record(proxy, nil, at: 0)
        let yaml = try #require(recording.yaml(at: 1_000_000_000))
        #expect(try ScenarioFile(parsing: yaml, file: "recorded.yaml").scenario.faults.isEmpty)
        #expect(yaml.components(separatedBy: "# Not possible here").count == replies.count + 1)
    }

    /// Twenty jumps of a timeline with 1000 entries are more than a file can contain.
    @Test func aLongRecordingOfTimelinesHasALimit() throws {
        var recording = LinkRecording(at: 0)
        let file = try TimelineFile(inline: "0s: { flap: [{ 3g: 10ms }, { edge: 10ms }] }", source: "test")
        var proxy = ManagedProxy(name: "p", listen: "", upstream: "", link: .timeline(file), seed: 1)
        for index in 0..<20 {
            proxy.link = index % 2 == 0 ? .timeline(file) : .passThrough
            recording.record(proxy, nil, at: Int64(index) * 100_000_000_000)
        }
        let yaml = try #require(recording.yaml(at: 2_000_000_000_000))
        #expect(yaml.contains("The recording was too long"))
        #expect(yaml.utf8.count < 256 << 10, "\(yaml.utf8.count)")
        _ = try ScenarioFile(parsing: yaml, file: "recorded.yaml")
    }
}
