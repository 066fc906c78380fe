import Determinism
import Foundation
import LinkModel
import TestSupport
import Testing

@testable import ConfigFiles

@Suite(.timeLimit(.minutes(20))) struct ProfileTests {
    private static let folder = Repository.root.appending(path: "profiles")

    @Test func everyFileInTheFolderIsBuiltIn() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path())
        let ids = files.filter { $0.hasSuffix(".yaml") }.map { String($0.dropLast(5)) }.sorted()
        #expect(ids == ProfileCatalogue.builtIn.map(\.id).sorted())
        for id in ids {
            let fromFile = try ProfileCatalogue.profile(Self.folder.appending(path: "\(id).yaml").path())
            let builtIn = try ProfileCatalogue.profile(id)
            #expect(fromFile == builtIn)
        }
    }

    @Test(arguments: ProfileCatalogue.builtIn) func everyNumberHasItsSourceAndGrade(_ profile: Profile) {
        let keys =
            ["down", "up"].flatMap { side in ["rate", "delay", "loss", "queue"].map { "\(side).\($0)" } } + [
                "dns-delay"
            ]
        // Only connection-level faults have the key `access`.
        let access = profile.conditions.connectionPolicy == .open ? [] : ["access"]
        #expect(profile.figures.map(\.key) == keys + access)
        for figure in profile.figures {
            #expect(figure.source != nil && figure.grade != nil, "\(profile.id) \(figure.key)")
        }
        #expect(!profile.about.isEmpty)
    }

    @Test func thePresetsHaveTheirFigures() throws {
        let edge = try ProfileCatalogue.profile("edge").conditions
        #expect(edge.down == DirectionConditions(rate: .kilobits(240), delay: .milliseconds(400)))
        #expect(edge.up == DirectionConditions(rate: .kilobits(200), delay: .milliseconds(440)))
        let lte = try ProfileCatalogue.profile("lte").conditions
        #expect(lte.up == DirectionConditions(rate: .kilobits(10_000), delay: .milliseconds(65)))
        #expect(try ProfileCatalogue.profile("loss100").conditions.up.loss == .one)
        #expect(try ProfileCatalogue.profile("high-latency-dns").conditions.dnsDelay == .seconds(3))
        #expect(try ProfileCatalogue.profile("very-bad-network").conditions.down.loss.description == "10 %")
    }

    @Test func aMisspeltNameGetsSuggestions() {
        #expect(throws: ProfileCatalogue.LookupError.self) { try ProfileCatalogue.profile("egde") }
        #expect(NearestName.of("egde", in: ProfileCatalogue.builtIn.map(\.id)) == ["edge"])
        #expect(NearestName.of("wfi", in: ProfileCatalogue.builtIn.map(\.id)).first == "wifi")
        #expect(NearestName.of("loss", in: ProfileCatalogue.builtIn.map(\.id)).isEmpty == false)
        #expect(NearestName.of("zzzzzzzz", in: ProfileCatalogue.builtIn.map(\.id)).isEmpty)
    }

    @Test(arguments: [
        ("slow3g", "'chrome-slow-3g' or 'wpt-3g-slow'"), ("Slow 3G", "'chrome-slow-3g' or 'wpt-3g-slow'"),
        ("fast-3g", "'chrome-slow-4g' or 'wpt-3g-fast'"), ("5G", "'5g-mid-band' or '5g-uk'"), ("tunnel", "'100-loss'"),
        ("egde", "'edge'"),
    ]) func aWordForANetworkGetsTheProfilesThatItMayMean(_ name: String, nearest: String) {
        let error = #expect(throws: ProfileCatalogue.LookupError.self) { try ProfileCatalogue.profile(name) }
        let message = "no profile is called '\(name)'; did you mean \(nearest)?"
        #expect(error?.description.hasPrefix(message) == true, "\(String(describing: error))")
    }

    @Test func aliasesAndSuggestionsAreBuiltIn() throws {
        #expect(try ProfileCatalogue.profile("4G").id == "lte")
        let suggested = ProfileCatalogue.profileSynonyms.values.joined()
        #expect(Set(suggested).union(ProfileCatalogue.aliases.values).isSubset(of: ProfileCatalogue.profileNames))
        let timelines = ProfileCatalogue.timelineSynonyms.values.joined()
        #expect(Set(timelines).isSubset(of: ProfileCatalogue.timelineNames))
        #expect(ProfileCatalogue.timelineHint("Tunnel") == "; did you mean 'subway' or 'train'?")
        #expect(ProfileCatalogue.timelineHint("subwy") == "; did you mean 'subway'?")
        for alias in ProfileCatalogue.aliases.keys { #expect(!ProfileCatalogue.profileNames.contains(alias)) }
    }

    @Test func figuresReplaceThoseOfBothDirectionsOrOfOne() throws {
        var figures = ConditionFigures()
        #expect(figures.isEmpty && figures.applied(to: .clear) == .clear && figures.name(changing: "3g") == "3g")
        try figures.add(.delay, .up, "5ms")
        try figures.add(.delay, nil, "200 ms")
        try figures.add(.rate, nil, "1mbit")
        try figures.add(.loss, .down, "2%")
        let queue = try #require(QueueLimit(packets: 7))
        let trace = try TraceFile.parse(Data("1\n".utf8), file: "x")
        let before = Conditions(
            up: DirectionConditions(trace: trace, loss: .one), down: DirectionConditions(loss: .one, queue: queue),
            dnsDelay: .seconds(1), connectionPolicy: .portal)
        let after = figures.applied(to: before)
        #expect(after.up == DirectionConditions(rate: .kilobits(1000), delay: .milliseconds(5), loss: .one))
        #expect(
            after.down.delay == .milliseconds(200) && after.down.loss.description == "2 %" && after.down.queue == queue)
        #expect(after.dnsDelay == .seconds(1) && after.connectionPolicy == .portal)
        #expect(figures.name(changing: "3g") == "3g with delay-up 5ms delay 200 ms rate 1mbit loss-down 2%")
        #expect(figures.name(changing: nil) == "custom")
        #expect(figures.texts(.up).map(\.key) == ["delay", "rate"] && figures.texts(.up).first?.text == "5ms")
        #expect(throws: ConditionFigures.ParseError.self) { try figures.add(.loss, nil, "2") }
    }

    @Test func aFileMayOmitKeysWithDefaults() throws {
        let text = """
            profile: 1
            name: Office
            down: { rate: 1638.4 kbit/s, delay: 37.5 ms }
            up: { delay: 0.5 s, queue: 10 packets }
            """
        let profile = try Profile(parsing: text, id: "office", file: "office.yaml")
        #expect(profile.conditions.down.rate?.bitsPerSecond == 1_638_400)
        #expect(profile.conditions.down.delay == .microseconds(37_500))
        #expect(profile.conditions.up.rate == nil)
        #expect(profile.conditions.up.delay == .milliseconds(500))
        #expect(profile.conditions.up.queue == .packets(10))
        #expect(profile.conditions.down.queue == .standard)
    }

    /// Invalid files and their errors in order.
    static let invalid: [(text: String, problems: [String])] = [
        ("", ["f.yaml: the file is empty"]),
        ("- a\n", ["f.yaml:1:1: expected a profile"]),
        ("profile: 1\n  name: x\n", ["f.yaml:2:7: invalid YAML"]),
        (
            "profile: 2\nname: A\ndown: {}\nup: {}\n",
            ["f.yaml:1:10: version '2' is not supported; expected 1"]
        ),
        ("profile: 1\ndown: {}\nup: {}\n", ["f.yaml:1:1: 'name' is missing"]),
        ("profile: 1\nname: A\nup: {}\n", ["f.yaml:1:1: 'down' is missing"]),
        (
            "profile: 1\nname: A\ndwon: {}\nup: {}\n",
            ["f.yaml:1:1: 'down' is missing", "f.yaml:3:1: unknown key 'dwon' in the profile; did you mean 'down'"]
        ),
        (
            "profile: 1\nname: A\ndown: { rate: 780, delay: 100 }\nup: { rate: 1 MB/s, loss: 5 }\n",
            [
                "f.yaml:3:15: 'down.rate': '780' has no unit; expected a rate such as '780 kbit/s'",
                "f.yaml:3:27: 'down.delay': '100' has no unit; expected a time such as '100 ms'",
                "f.yaml:4:13: 'up.rate': '1 MB/s' counts bytes per second",
                "f.yaml:4:27: 'up.loss': '5' has no unit",
            ]
        ),
        (
            "profile: 1\nname: A\ndown: { rate: -3 kbit/s, delay: 700 s, loss: 101 %, queue: 0 packets }\nup: {}\n",
            [
                "f.yaml:3:15: 'down.rate': '-3 kbit/s' is negative",
                "f.yaml:3:33: 'down.delay': '700 s' is out of range; expected 0 ms to 600 s",
                "f.yaml:3:46: 'down.loss': '101 %' is out of range; expected 0 % to 100 %",
                "f.yaml:3:60: 'down.queue': '0 packets' is out of range",
            ]
        ),
        (
            "profile: 1\nname: A\ndown: { rate: 0 kbit/s }\nup: { rate: 999999999999 Gbit/s }\n",
            [
                "f.yaml:3:15: 'down.rate': '0 kbit/s' stops all traffic; for an outage write 'loss: 100 %'",
                "f.yaml:4:13: 'up.rate': '999999999999 Gbit/s' is out of range",
            ]
        ),
        (
            "profile: 1\nname: A\ndown: { rate: nan kbit/s, delay: 1e3 ms, loss: inf % }\nup: { rate: 1.2.3 kbit/s }\n",
            [
                "f.yaml:3:15: 'down.rate': 'nan kbit/s' is not a number",
                "f.yaml:3:34: 'down.delay': unknown unit 'e3 ms'",
                "f.yaml:3:48: 'down.loss': 'inf %' is not a number",
                "f.yaml:4:13: 'up.rate': unknown unit '.3 kbit/s'",
            ]
        ),
        (
            "profile: 1\nname: A\ninterface: cellar\ndown: {}\nup: { rate: { source: x } }\n",
            [
                "f.yaml:3:12: 'cellar': expected one of cellular, wifi, wired; did you mean 'cellular'",
                "f.yaml:5:13: 'up.rate' has no 'value'",
            ]
        ),
        (
            "profile: 1\nname: A\nsources: { tabel: t }\ndown: { rate: { value: 1 kbit/s, source: table, grade: guess } }\nup: {}\n",
            [
                "f.yaml:4:42: source 'table' is not defined in 'sources'; did you mean 'tabel'",
                "f.yaml:4:56: 'guess': expected one of observed, code, published, judgement",
            ]
        ),
        ("profile: 1\nname: A\nname: B\ndown: {}\nup: {}\n", ["f.yaml:2:1: duplicate key 'name'"]),
        (
            "profile: 1\nname: [1]\ndown: 3\nup: []\n",
            [
                "f.yaml:2:7: expected a name", "f.yaml:3:7: 'down': expected a mapping",
                "f.yaml:4:5: 'up': expected a mapping",
            ]
        ),
    ]

    @Test(arguments: invalid) func anInvalidFileIsRejectedWithLocationAndExpectation(
        _ text: String, _ problems: [String]
    )
        throws
    {
        do {
            _ = try Profile(parsing: text, id: "f", file: "f.yaml")
            Issue.record("accepted: \(text)")
        } catch {
            #expect(error.problems.count == problems.count, "\(error)")
            for (found, expected) in zip(error.problems, problems) {
                #expect(found.description.hasPrefix(expected), "\(found)")
            }
        }
    }

    @Test func hostileFilesAreRejectedInTime() {
        let bomb = "a0: &a0 x\n" + (1..<40).map { "a\($0): &a\($0) [*a\($0 - 1), *a\($0 - 1)]\n" }.joined()
        let hiddenBomb =
            "a0: &a0 x\n" + (1..<40).map { "a\($0): &a\($0) [\u{85}*a\($0 - 1),\u{85}*a\($0 - 1)]\n" }.joined()
            + "? [\u{2028}*a39]\n: 1\n"
        let hostile = [
            hiddenBomb,
            String(repeating: "[", count: 100_000), String(repeating: "{a: ", count: 50_000), bomb,
            String(repeating: "x", count: 300_000), "profile: 1\nname: \u{0}\n", "%YAML 9.9\n---\na: *nowhere\n",
            "? {a: 1}\n: 2\n? [x]\n: 3\n", "profile: 1\n? [a]\n: 1\n? [a]\n: 2\n",
        ]
        for text in hostile {
            #expect(throws: FileError.self) { try Profile(parsing: text, id: "f", file: "f.yaml") }
        }
    }

    @Test func aPathIsNeverLookedUpAsAName() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "profiles-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "edge.yaml")
        try "profile: 1\nname: Mine\ndown: {}\nup: {}\n".write(to: file, atomically: true, encoding: .utf8)
        let profile = try ProfileCatalogue.profile(file.path())
        #expect(profile.name == "Mine" && profile.id == "edge" && profile.conditions.isClear)
        #expect(throws: ProfileCatalogue.LookupError.self) { try ProfileCatalogue.profile(folder.path()) }
        #expect(throws: ProfileCatalogue.LookupError.self) { try ProfileCatalogue.profile("./no-such-file.yaml") }
    }

    @Test(arguments: [
        ("Edge", "edge"), ("3G", "3g"), ("LTE", "lte"), ("WiFi", "wifi"), ("Very-Bad-Network", "very-bad-network"),
        ("Loss100", "100-loss"), ("VERYBAD", "very-bad-network"), ("WIFI-802.11AC", "wifi-802.11ac"),
    ]) func theCaseOfAProfileNameDoesNotMatter(_ name: String, _ id: String) throws {
        #expect(try ProfileCatalogue.profile(name).id == id)
        #expect(ProfileCatalogue.builtInProfile(named: name)?.id == id)
        guard case .profile(let profile) = try ProfileCatalogue.profileOrTimeline(name) else {
            Issue.record("\(name) is not a profile")
            return
        }
        #expect(profile.id == id)
        let timeline = try TimelineFile(inline: "0s: \(name), 1s: {flap: [{\(name): 1s}, {3G: 1s}]}", source: "t")
            .timeline
        #expect(timeline.links.map(\.name) == [id, id, "3g"])
    }
}
