import Client
import Determinism
import Field
import TestSupport
import Testing
import Wire

/// The sign-in before the first payload, and the payload as a tree with files, a language and a lifetime.
@Suite struct FieldPayloadTests {
    private func client(
        schedule: (length: Int, grace: Int)? = nil, behavior: FieldBehavior = FieldBehavior(), _ seeds: [FieldSeed] = []
    ) throws -> FieldClient {
        var client = try FieldClient(behavior: behavior, schedule: schedule)
        for seed in seeds { #expect(client.service.seed(seed, owner: "ada"), "\(seed)") }
        client.answerAll()
        return client
    }

    // MARK: The sign-in

    @Test func theAppSignsInBeforeTheFirstPullAndOnlyThen() throws {
        var client = try FieldClient(interface: NetworkInterface(isUp: false))
        client.fates = [("session", .status(401))]
        client.setInterface(true)
        client.answerAll()
        client.run(for: .seconds(3600))
        #expect(client.requests() == ["PUT session"] && client.engine.view.screen.name == "sign-in")
        client.fates = [("session", .lostResponse)]
        try client.call("retry")
        client.answerAll()
        #expect(client.requests() == ["PUT session", "PUT session"] && client.engine.view.screen.name == "failed")
        client.fates = []
        client.run(for: .seconds(2))
        #expect(client.requests(since: 2) == ["PUT session", "GET payload"])
        try client.restart()
        try client.perform(.sync)
        client.answerAll()
        #expect(client.requests(since: 4) == ["GET payload"])
    }

    @Test func rejectedCredentialsNeedAnotherSignIn() throws {
        var client = try client()
        client.fates = [("updates", .status(401))]
        try client.create("a1", in: "q1", ["text": "yes"])
        client.answerAll()
        client.fates = []
        let count = client.sent.count
        try client.restart()
        client.answerAll()
        #expect(client.requests(since: count) == ["PUT session", "POST updates", "GET payload"])
        #expect(client.record("a1")?.text == "yes")
    }

    // MARK: The tree

    private static let tree: [FieldSeed] = [
        .section(kind: .project, key: "j1", title: "House"), .section(kind: .activity, key: "v1", title: "Check"),
        .section(kind: .topic, key: "t1", title: "Doors"), .section(kind: .topic, key: "t2", title: "Lamps"),
        .place(key: "v1", parent: "j1"), .place(key: "t1", parent: "v1"), .place(key: "t2", parent: "v1"),
        .question(key: "q3", title: "Shut?", choices: []), .place(key: "q3", parent: "t1"),
        .issue(key: "i3", title: "Bulb", text: "dark"), .place(key: "i3", parent: "t2"),
    ]

    @Test func sectionsShowWhatIsInThem() throws {
        var client = try client(Self.tree)
        for (key, path, questions, open) in [
            ("j1", "House", "1", "1"), ("v1", "House / Check", "1", "1"), ("t1", "House / Check / Doors", "1", "0"),
            ("t2", "House / Check / Lamps", "0", "1"),
        ] {
            try client.open(key)
            let fields = client.engine.view.screen.fields
            #expect(fields["path"] == path && fields["questions"] == questions && fields["open"] == open, "\(key)")
            #expect(client.engine.view.screen.controls.contains("add") == (key.first == "t"))
        }
        try client.open("q3")
        #expect(client.engine.view.screen.fields["path"] == "House / Check / Doors")
        try client.open("q1")
        #expect(client.engine.view.screen.fields["path"] == nil)
    }

    @Test func anIssueIsCreatedInTheOpenTopic() throws {
        var client = try client(Self.tree)
        client.setInterface(false)
        try client.create("i4", in: "t1", ["title": "Hinge", "text": "squeaks"])
        #expect(throws: AppActError.self) { try client.create("i5", in: "v1", ["title": "Roof"]) }
        try client.restart()
        try client.open("i4")
        let screen = client.engine.view.screen
        #expect(screen.fields["path"] == "House / Check / Doors")
        client.setInterface(true)
        client.answerAll()
        #expect(client.engine.view.screen == screen && client.state.values(under: "record/").isEmpty)
    }

    // MARK: Files

    @Test func filesAreFoundWhereverTheyAre() throws {
        let places = ["j1", "v1", "t1", "q3", "i3"]
        var seeds = Self.tree
        for place in places {
            seeds += [.file(key: "f-\(place)", title: place, bytes: 100), .place(key: "f-\(place)", parent: place)]
        }
        let client = try client(seeds + [.file(key: "f-root", title: "root", bytes: 100)])
        for place in places + ["root"] { #expect(client.text("f-\(place)") == "available", "\(place)") }
    }

    @Test(arguments: [true, false]) func oneContentIsDownloadedOnceAndAtItsLastURL(_ updatesURLs: Bool) throws {
        var behavior = FieldBehavior()
        behavior.updatesURLs = updatesURLs
        var client = try FieldClient(behavior: behavior)
        for (key, place) in [("f1", "q1"), ("f2", "q2")] {
            client.service.seed(.file(key: key, title: "Plan", bytes: 200_000), owner: "ada")
            #expect(client.service.seed(.place(key: key, parent: place), owner: "ada"))
        }
        client.answer()
        client.answer(.cutAfter(70_000))
        #expect(client.requests(since: 1) == ["GET payload", "GET files/f1", "GET files/f1"])
        #expect(client.service.change("f1", title: nil, text: nil, owner: "ada"))
        client.answerAll()
        #expect((client.text("f2") == "available") == updatesURLs && client.row("f1") == nil)
        // The bytes of the file once, and those of the 404.
        if updatesURLs { #expect((200_000..<200_100).contains(client.streamedBytes)) }
    }

    @Test(arguments: [
        "https://example.org/field/files/f1", "/field/files/", "/field/../f1", "/notes/f1", "/field/files/f 1",
    ])
    func aFileOfAnotherServerMakesAPayloadInvalid(_ url: String) throws {
        var client = try client()
        let digest = "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="
        func payload(_ url: String) -> String {
            "{\"cursor\":9,\"period\":{\"length\":60000,\"grace\":0},\"projects\":[],\"questions\":[],\"issues\":[],"
                + "\"extra\":[{\"files\":{\"x\":{\"key\":\"f1\",\"title\":\"Plan\",\"bytes\":4,"
                + "\"digest\":\"\(digest)\",\"url\":\"\(url)\"}}}]}"
        }
        try client.perform(.sync)
        client.answer(.body(payload(url)))
        #expect(client.engine.view.screen.error == "stale" && client.row("q1") != nil)
        client.inFlight = []
        try client.restart()
        try client.perform(.sync)
        client.answer(.body(payload("/field/files/f1")))
        #expect(client.row("f1") != nil && client.row("q1") == nil)
    }

    // MARK: The language

    @Test func aLanguageIsShownAfterTheNextPull() throws {
        var client = try client([.translation(key: "q1", language: "de", title: "Wasser?")])
        func title() -> String? { client.row("q1")?.fields["title"] }
        let count = client.sent.count
        try client.call("language", nil, ["language": "de"])
        client.run(for: .seconds(3600))
        try client.restart()
        try client.open(nil)
        client.answerAll()
        #expect(title() == "Water?" && client.sent.count == count)
        try client.perform(.sync)
        client.answerAll()
        #expect(title() == "Wasser?")
        for language in ["", "d", "DE", "1a", "de_AT", String(repeating: "a", count: 36)] {
            #expect(throws: AppActError.self) { try client.call("language", nil, ["language": language]) }
        }
    }

    // MARK: The submission period

    @Test(arguments: [0, 5 * 3_600_000]) func aPayloadIsFreshInItsPeriodOnly(_ shift: Int) throws {
        var client = try client(schedule: (length: 60_000, grace: 0))
        client.shiftClock(by: shift)
        func pulls() throws -> Int {
            try client.restart()
            try client.open(nil)
            client.answerAll()
            return client.requests().count { $0 == "GET payload" }
        }
        client.run(for: .milliseconds(59_999))
        #expect(try pulls() == 1)
        client.run(for: .milliseconds(1))
        #expect(try pulls() == 2)
        #expect(try pulls() == 2)
        client.run(for: .seconds(60))
        client.fates = [("payload", .status(503))]
        #expect(try pulls() == 3)
        #expect(client.engine.view.screen.error == "stale" && client.row("q1") != nil)
    }
}
