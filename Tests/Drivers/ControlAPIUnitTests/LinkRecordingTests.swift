import ConfigFiles
import Determinism
import HTTPTypes
import LinkModel
import Scenario
import TestSupport
import Testing
import Wire

@testable import ControlAPI
@testable import Impairment
@testable import Proxy

/// Recordings of links and faults, in virtual time.
@Suite struct LinkRecordingTests {
    private static let base: Int64 = 1_700_000_000_000_000_000

    private static func proxy(_ name: String = "notes") -> ManagedProxy {
        ManagedProxy(name: name, listen: "127.0.0.1:1", upstream: "127.0.0.1:2", link: nil, seed: 3)
    }

    private static func scenario(_ yaml: String) throws -> Scenario {
        let problems = ScenarioFile.problems(in: yaml, file: "recorded.yaml")
        #expect(problems.isEmpty, "\(problems)\n\(yaml)")
        return try ScenarioFile(parsing: yaml, file: "recorded.yaml").scenario
    }

    private static func link(_ json: String) throws -> LinkSetting {
        try LinkSetting(JSONFields(body: Array(json.utf8)))
    }

    private static func conditions(_ entries: [Scenario.NetworkEntry], at time: Nanoseconds) -> Conditions? {
        guard case .hold(let link)? = entries.last(where: { $0.start <= time })?.phase else { return nil }
        return link.conditions
    }

    /// The scenario is valid, and has the conditions of the recording at each time.
    @Test(arguments: randomSeeds(25)) func theScenarioHasTheRecordedLinks(seed: UInt64) throws {
        var random = RandomStream(seed: seed, "recording")
        var recording = LinkRecording(at: Self.base)
        var proxy = Self.proxy()
        let settings =
            try [
                #"{"profile":"edge"}"#, #"{"profile":"100-loss"}"#, #"{"profile":"offline"}"#,
                #"{"netem":{"up":"delay 37ms 5ms loss 1.5% rate 123kbit","down":"loss gemodel 1% 25% 70% 0%"}}"#,
                #"{"conditions":{"up":{"delay":"1.5 ms"},"down":{"queue":"64 KB","duplicate":"2 %"}}}"#,
            ].map(Self.link) + [.passThrough]
        var reference: [(time: Nanoseconds, conditions: Conditions)] = []
        var time = Nanoseconds.zero
        for number in 0..<20 {
            if number > 0 { time += .milliseconds(1 + random.integer(below: 20_000)) }
            proxy.link = settings[Int(random.integer(below: Int64(settings.count)))]
            proxy.outage = PerDirection(
                up: random.bool(probability: 0.2), down: random.bool(probability: 0.2))
            recording.record(proxy, nil, at: Self.base + time.count + random.integer(below: 1_000_000))
            var conditions = proxy.link.initialConditions
            if proxy.outage.up && proxy.outage.down {
                conditions = try Self.link(#"{"profile":"100-loss"}"#).initialConditions
            } else {
                if proxy.outage.up { conditions.up.loss = .one }
                if proxy.outage.down { conditions.down.loss = .one }
            }
            reference.append((time, conditions))
        }
        let end = time + .seconds(1)
        recording.end(at: Self.base + end.count)
        let scenario = try Self.scenario(try #require(recording.yaml(at: 0)))
        let network = try #require(scenario.devices.first?.network)
        #expect(scenario.devices.map(\.name) == ["Notes"])
        for sample in reference.map(\.time) + (0..<50).map({ _ in Nanoseconds(random.integer(below: end.count)) }) {
            let expected = try #require(reference.last { $0.time <= sample }).conditions
            #expect(Self.conditions(network, at: sample) == expected, "at \(sample)")
        }
        let yaml = try #require(recording.replays(at: 0).first?.timeline)
        let timeline = try TimelineFile(parsing: yaml, id: "recorded", file: "recorded.yaml").timeline
        var run = TimelineRun(timeline, startingAt: .start, seed: 1, name: "replay")
        for (time, conditions) in reference {
            _ = run.advance(to: .start + time)
            #expect(run.conditions == conditions, "at \(time)\n\(yaml)")
        }
    }

    @Test func aTimelineBecomesItsLinks() throws {
        var recording = LinkRecording(at: Self.base)
        var proxy = Self.proxy()
        recording.record(proxy, nil, at: Self.base)
        proxy.link = try Self.link(#"{"timeline":"0s: 3g, 20s: 100-loss, 50s: edge"}"#)
        recording.record(proxy, nil, at: Self.base + 5_000_000_000)
        recording.end(at: Self.base + 60_000_000_000)
        let links = LinkRecording.links(of: recording.tracks[0], until: .seconds(60))
        #expect(links.map(\.link.name) == ["none", "3g", "100-loss", "edge"])
        #expect(links.map(\.start) == [.zero, .seconds(5), .seconds(25), .seconds(55)])
        let network = try Self.scenario(try #require(recording.yaml(at: 0))).devices[0].network
        #expect(network.map(\.start) == links.map(\.start))
        // The interface of the device stays up: a proxy cannot take it down.
        #expect(network[2].signalling == .never)
    }

    /// The conditions within a ramp are those of the timeline, in steps of half a second at most.
    @Test func aRampBecomesSteps() throws {
        var recording = LinkRecording(at: Self.base)
        var proxy = Self.proxy()
        proxy.link = .timeline(
            try TimelineFile(inline: "0s: edge, 2s: { ramp: wifi, over: 5s }", source: "test"))
        recording.record(proxy, nil, at: Self.base)
        recording.end(at: Self.base + 10_000_000_000)
        let links = LinkRecording.links(of: recording.tracks[0], until: .seconds(10))
        #expect(links.first?.link.name == "edge" && links.last?.link.name == "wifi")
        #expect((8...14).contains(links.count))
        #expect(links.map(\.start) == links.map(\.start).sorted())
        _ = try Self.scenario(try #require(recording.yaml(at: 0)))
    }

    @Test func faultsHaveStepsThatTheyCanMatch() throws {
        var recording = LinkRecording(at: Self.base)
        var proxy = Self.proxy("1 notes/é")
        recording.record(proxy, nil, at: Self.base)
        let rules = [
            "PUT * before-request-end reset", "POST /notes/ before-response stall",
            "any * times 1 before-request respond 503 Retry-After: 1 body busy",
            "DELETE * after-response delay 5s", "GET * probability 5% times unlimited mid-response throttle 100",
            "PATCH * before-request-end reset",
        ]
        for (index, rule) in rules.enumerated() {
            let fields = try JSONFields(body: Array(JSONText.object([("rule", JSONText.string(rule))]).utf8))
            proxy.faults.append(try StoredFault(.init(fields), names: proxy.faults.map(\.name)))
            recording.record(proxy, nil, at: Self.base + Int64(index + 1) * 1_000_000_000)
        }
        #expect(recording.steps == rules.count)
        let replay = try #require(recording.replays(at: Self.base + 10_000_000_000).first)
        let written = rules.map { $0.replacing("times 1 ", with: "").replacing("times unlimited ", with: "") }
        #expect(replay.faults.map(\.rule) == written)
        #expect(replay.faults.map(\.time) == (1...rules.count).map { .seconds(Int64($0)) })
        let yaml = try #require(recording.yaml(at: Self.base + 10_000_000_000))
        let scenario = try Self.scenario(yaml)
        #expect(scenario.faults.count == 5 && scenario.steps.count == 5)
        #expect(scenario.devices.map(\.name) == ["P1notes"])
        #expect(yaml.contains("PATCH"))
    }

    @Test func aTimelineThatContinuesIsNoChange() throws {
        var recording = LinkRecording(at: Self.base)
        var proxy = Self.proxy()
        proxy.link = try Self.link(#"{"timeline":"0s: 3g, 20s: 100-loss, 50s: edge"}"#)
        var link = SharedLink()
        guard case .timeline(let file) = proxy.link else { return }
        link.startTimeline(file.timeline, at: .start)
        for second in [Int64(0), 3, 21] {
            link.advance(to: .start + .seconds(second))
            recording.record(proxy, ProxyStatus(link: LinkStatus(&link)), at: Self.base + second * 1_000_000_000)
        }
        #expect(recording.steps == 0)
        // A jump is a change.
        link.startTimeline(file.timeline, from: .seconds(50), at: .start + .seconds(22))
        recording.record(proxy, ProxyStatus(link: LinkStatus(&link)), at: Self.base + 22_000_000_000)
        #expect(recording.steps == 1)
        let links = LinkRecording.links(of: recording.tracks[0], until: .seconds(30))
        #expect(links.map(\.link.name) == ["3g", "100-loss", "edge"])
        #expect(links.map(\.start) == [.zero, .seconds(20), .seconds(22)])
    }

    @Test func aRecordingIsStartedReadAndEnded() async throws {
        let call = APICall()
        #expect(try await call("GET", "/slowlane/v1/recording").status == .notFound)
        #expect(try await call("POST", "/slowlane/v1/recording", #"{"state":"x"}"#).status == .badRequest)
        try await call.proxy("p")
        let started = try await call("POST", "/slowlane/v1/recording", #"{"state":"on"}"#)
        #expect(started.object?["state"]?.text == "on" && started.object?["steps"] == .integer(0))
        #expect(try await call("POST", "/slowlane/v1/recording", #"{"state":"on"}"#).status == .conflict)
        try await Task.sleep(for: .milliseconds(5))
        _ = try await call("PUT", "/slowlane/v1/proxies/p/link", #"{"profile":"edge"}"#)
        try await Task.sleep(for: .milliseconds(5))
        _ = try await call("PUT", "/slowlane/v1/proxies/p/outage", #"{"up":true,"down":true}"#)
        let ended = try await call("POST", "/slowlane/v1/recording", #"{"state":"off"}"#)
        #expect(ended.object?["steps"] == .integer(2) && ended.object?["ended"] != .null)
        let scenario = try Self.scenario(try #require(ended.object?["yaml"]?.text))
        #expect(scenario.devices[0].network.count == 3)
        let proxy = try #require(ended.object?["proxies"]?.array.first?.object)
        #expect(proxy["proxy"]?.text == "p" && proxy["faults"]?.array.isEmpty == true)
        #expect(proxy["timeline"]?.text?.contains(": edge\n") == true)
        _ = try await call("PUT", "/slowlane/v1/proxies/p/link", #"{"profile":"3g"}"#)
        #expect(try await call("GET", "/slowlane/v1/recording").object?["steps"] == .integer(2))
    }
}
