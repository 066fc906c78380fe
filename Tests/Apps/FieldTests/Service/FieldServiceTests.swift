import Field
import HTTPTypes
import NotesContract
import Testing
import Wire

/// The contract of docs/explanation/field.md.
@Suite struct FieldServiceTests {
    private static let hour = 3_600_000
    /// The server's clock: a quarter past an hour.
    private static let now = 1000 * hour + hour / 4

    private let service = FieldService()

    init() {
        service.seed(.question(key: "q1", title: "Water?", choices: []), owner: "ada")
        service.seed(.question(key: "q2", title: "Door?", choices: ["open", "shut"]), owner: "ada")
        service.seed(.issue(key: "i1", title: "Lamp", text: "broken"), owner: "ada")
        service.seed(.file(key: "f1", title: "Plan", bytes: 100_000), owner: "ada")
        service.seed(.schedule(length: Self.hour, grace: Self.hour), owner: "ada")
    }

    private func respond(
        _ method: String, _ path: String, _ fields: [String: String] = [:], body: [UInt8] = [], user: String? = "ada",
        at now: Int = now
    ) -> FieldService.Response {
        var request = HTTPRequest(method: .init(method)!, scheme: "http", authority: "server", path: path)
        for (name, value) in fields { request.headerFields[.init(name)!] = value }
        return service.respond(to: request, user: user, body: body, milliseconds: now)
    }

    private func push(_ groups: String, at now: Int = now) -> FieldService.Response {
        respond("POST", "/field/updates", body: Array("{\"groups\":[\(groups)]}".utf8), at: now)
    }

    private func group(_ start: Int, _ records: String) -> String {
        "{\"start\":\(start),\"end\":\(start + Self.hour),\(records)}"
    }

    private func answer(_ key: String, to question: String = "q1", at time: Int, edit: Int = 1, _ text: String = "yes")
        -> String
    {
        "{\"key\":\"\(key)\",\"question\":\"\(question)\",\"at\":\(time),\"edit\":\(edit),\"text\":\"\(text)\"}"
    }

    private func results(_ response: FieldService.Response) -> [String] {
        (JSONText.parse(response.body)?["results"].array ?? []).map {
            "\($0["key"].text ?? "") \($0["status"].text ?? "") \($0["reason"].text ?? "-")"
        }
    }

    private var start: Int { 1000 * Self.hour }

    // MARK: The payload

    @Test func eachResponseIsMarkedAndHasTheTime() {
        for response in [respond("GET", "/field/payload"), respond("GET", "/field/nothing"), push("")] {
            #expect(response.head.headerFields[FieldService.markerField] == "1")
            #expect(response.head.headerFields[FieldService.timeField] == "\(Self.now)")
        }
        #expect(respond("GET", "/field/payload", user: nil).head.status.code == 401)
        #expect(respond("GET", "/field/nothing").head.status.code == 404)
        #expect(respond("PUT", "/field/payload").head.status.code == 405)
    }

    @Test func anUnchangedPayloadIsNotSentAgain() throws {
        let first = respond("GET", "/field/payload")
        let tag = try #require(first.head.headerFields[.eTag])
        #expect(respond("GET", "/field/payload", ["If-None-Match": tag]).head.status.code == 304)
        _ = push(group(start, "\"answers\":[\(answer("a1", at: start))]"))
        let next = respond("GET", "/field/payload", ["If-None-Match": tag])
        #expect(next.head.status.code == 200)
        let answers = try #require(JSONText.parse(next.body))["questions"].array[0]["answers"].array
        #expect(answers.map { $0["key"].text } == ["a1"])
    }

    @Test func usersDoNotSeeEachOther() throws {
        let payload = try #require(JSONText.parse(respond("GET", "/field/payload", user: "bo").body))
        #expect(payload["questions"].array.isEmpty && payload["files"].array.isEmpty)
        #expect(respond("GET", "/field/files/f1", user: "bo").head.status.code == 404)
    }

    @Test func aSignInChecksTheCredentials() {
        #expect(respond("PUT", "/field/session").head.status.code == 204)
        #expect(respond("PUT", "/field/session", user: nil).head.status.code == 401)
        #expect(respond("GET", "/field/session").head.status.code == 405)
    }

    /// A project with an activity, a topic, a question and a file in each of them.
    private func seedTree() {
        let seeds: [FieldSeed] = [
            .section(kind: .project, key: "j1", title: "House"), .section(kind: .activity, key: "v1", title: "Check"),
            .section(kind: .topic, key: "t1", title: "Doors"), .question(key: "q3", title: "Shut?", choices: []),
            .file(key: "f3", title: "Map", bytes: 10), .place(key: "v1", parent: "j1"),
            .place(key: "t1", parent: "v1"), .place(key: "q3", parent: "t1"), .place(key: "f3", parent: "q3"),
        ]
        for seed in seeds { #expect(service.seed(seed, owner: "ada"), "\(seed)") }
    }

    @Test func thePayloadIsATree() throws {
        seedTree()
        let payload = try #require(JSONText.parse(respond("GET", "/field/payload").body))
        #expect(payload["questions"].array.map { $0["key"].text } == ["q1", "q2"])
        #expect(payload["files"].array.map { $0["url"].text } == ["/field/files/f1"])
        let topic = payload["projects"].array[0]["activities"].array[0]["topics"].array[0]
        #expect(topic["title"].text == "Doors" && topic["issues"] == .array([]) && topic["files"] == .null)
        #expect(topic["questions"].array[0]["files"].array.map { $0["url"].text } == ["/field/files/f3"])
        // What contains something is not deleted.
        #expect(!service.change("t1", title: nil, text: nil, owner: "ada"))
        #expect(service.change("f3", title: nil, text: nil, owner: "ada"))
        #expect(service.change("q3", title: nil, text: nil, owner: "ada"))
        #expect(service.change("t1", title: nil, text: nil, owner: "ada"))
    }

    @Test func aRecordIsOnlyWhereItsKindCanBe() {
        seedTree()
        for (key, parent) in [("q1", "v1"), ("j1", "t1"), ("t1", "v1"), ("f1", "f3"), ("q1", "t9"), ("q9", "t1")] {
            #expect(!service.seed(.place(key: key, parent: parent), owner: "ada"), "\(key) in \(parent)")
        }
        #expect(!service.seed(.section(kind: .issue, key: "x1", title: "x"), owner: "ada"))
    }

    @Test func aNewIssueIsInItsTopic() throws {
        seedTree()
        func note(_ key: String, _ issue: String, _ topic: String) -> String {
            "\"notes\":[{\"key\":\"\(key)\",\"issue\":\"\(issue)\",\"title\":\"x\",\"topic\":\"\(topic)\",\"at\":1,"
                + "\"text\":\"x\"}]"
        }
        #expect(results(push(group(start, note("n1", "i3", "t1")))) == ["n1 stored -"])
        #expect(results(push(group(start, note("n2", "i4", "v1")))) == ["n2 rejected unknown topic"])
        let payload = try #require(JSONText.parse(respond("GET", "/field/payload").body))
        let topic = payload["projects"].array[0]["activities"].array[0]["topics"].array[0]
        #expect(topic["issues"].array.map { $0["key"].text } == ["i3"])
    }

    @Test func textsAreInTheLanguageOfTheRequest() throws {
        #expect(service.seed(.translation(key: "q1", language: "de", title: "Wasser?"), owner: "ada"))
        #expect(!service.seed(.translation(key: "q1", language: "DE", title: "Wasser?"), owner: "ada"))
        func titles(_ language: String) throws -> (titles: [String?], tag: String?) {
            let response = respond("GET", "/field/payload", ["Accept-Language": language])
            let payload = try #require(JSONText.parse(response.body))
            #expect(payload["language"].text == (language == "de" ? "de" : nil))
            return (payload["questions"].array.map { $0["title"].text }, response.head.headerFields[.eTag])
        }
        // A title without a translation is in the language of the service, and so is a payload without any.
        let (german, english) = (try titles("de"), try titles("fr"))
        #expect(german.titles == ["Wasser?", "Door?"] && english.titles == ["Water?", "Door?"])
        #expect(german.tag != english.tag)
        let fields = ["Accept-Language": "de", "If-None-Match": german.tag ?? ""]
        #expect(respond("GET", "/field/payload", fields).head.status.code == 304)
        let others = ["Accept-Language": "de", "If-None-Match": english.tag ?? ""]
        #expect(respond("GET", "/field/payload", others).head.status.code == 200)
    }

    // MARK: Updates

    @Test func aRepetitionHasNoSecondEffectAndTheSameEntityTag() {
        let body = group(
            start,
            "\"answers\":[\(answer("a1", at: start))],\"notes\":[{\"key\":\"n1\",\"issue\":\"i1\",\"at\":1,\"text\":\"x\"}]"
        )
        let (first, second) = (push(body), push(body))
        #expect(results(first) == ["a1 stored -", "n1 stored -"] && results(second) == results(first))
        #expect(first.head.headerFields[.eTag] == second.head.headerFields[.eTag])
        #expect(service.records(of: "ada").filter { $0.kind == .answer }.map(\.revision) == [1])
        #expect(service.records(of: "ada").first { $0.key == "i1" }?.revision == 2)
    }

    @Test func anOlderTextDoesNotReplaceANewerOne() {
        _ = push(group(start, "\"answers\":[\(answer("a1", at: start, edit: 3, "new"))]"))
        _ = push(group(start, "\"answers\":[\(answer("a1", at: start, edit: 2, "old"))]"))
        #expect(service.records(of: "ada").first { $0.key == "a1" }?.text == "new")
    }

    @Test func aPoisonRecordIsRejectedAlone() {
        let response = push(
            group(
                start,
                "\"answers\":[\(answer("a1", to: "q2", at: start, "ajar")),\(answer("a2", to: "q9", at: start)),"
                    + "\(answer("a3", at: start))]"))
        #expect(response.head.status.code == 200)
        #expect(
            results(response) == ["a1 rejected expected open or shut", "a2 rejected unknown question", "a3 stored -"])
    }

    @Test(arguments: [(0, true), (2 * hour, true), (2 * hour + 1, false)])
    func theServersClockDecidesWhatIsLate(_ after: Int, _ isStored: Bool) {
        // The period ends after one hour, and its grace after two.
        let response = push(group(start, "\"answers\":[\(answer("a1", at: start))]"), at: start + after)
        #expect(results(response) == [isStored ? "a1 stored -" : "a1 rejected late"])
        // A repetition of what is stored is not late.
        if isStored {
            #expect(
                results(push(group(start, "\"answers\":[\(answer("a1", at: start))]"), at: .max / 2)) == ["a1 stored -"]
            )
        }
    }

    @Test func aRecordOutsideOfItsGroupIsRejected() {
        for (group, time) in [(start, start + Self.hour), (start, start - 1), (start + 1, start + 1)] {
            #expect(
                results(push(self.group(group, "\"answers\":[\(answer("a1", at: time))]")))
                    == ["a1 rejected not in the period of its group"])
        }
    }

    @Test func aNoteOfAnUnknownIssueCreatesItIfItHasATitle() {
        let notes =
            "{\"key\":\"n1\",\"issue\":\"i2\",\"at\":1,\"text\":\"x\"},"
            + "{\"key\":\"n2\",\"issue\":\"i3\",\"title\":\"Roof\",\"at\":1,\"text\":\"x\",\"resolves\":true}"
        #expect(results(push(group(start, "\"notes\":[\(notes)]"))) == ["n1 rejected unknown issue", "n2 stored -"])
        #expect(service.records(of: "ada").first { $0.key == "i3" }?.text == "resolved")
    }

    @Test(arguments: ["", "{}", "[1]", "{\"groups\":[]}", "{\"groups\":[{\"answers\":[{\"key\":\"\"}]}]}"])
    func aBodyWithoutRecordsIsA400(_ body: String) {
        #expect(respond("POST", "/field/updates", body: Array(body.utf8)).head.status.code == 400)
    }

    // MARK: Photos

    private func announce(_ bytes: [UInt8], key: String = "p1") {
        let record =
            "{\"key\":\"\(key)\",\"issue\":\"i1\",\"title\":\"lamp\",\"bytes\":\(bytes.count),\"digest\":"
            + "\"\(AttachmentDigest(of: bytes))\"}"
        #expect(results(push(group(start, "\"photos\":[\(record)]"))) == ["\(key) stored -"])
    }

    private func append(_ bytes: [UInt8], at offset: Int, isLast: Bool) -> FieldService.Response {
        respond(
            "PATCH", "/field/photos/p1", ["Upload-Offset": "\(offset)", "Upload-Complete": isLast ? "?1" : "?0"],
            body: bytes)
    }

    private func offset(_ response: FieldService.Response) -> String {
        let fields = response.head.headerFields
        return "\(response.head.status.code) \(fields[.init("Upload-Offset")!] ?? "-") "
            + "\(fields[.init("Upload-Complete")!] ?? "-")"
    }

    @Test func anUploadContinuesAtItsOffset() {
        #expect(offset(respond("HEAD", "/field/photos/p1")) == "404 - -")
        announce(Array("abcdef".utf8))
        #expect(offset(respond("HEAD", "/field/photos/p1")) == "204 0 ?0")
        #expect(respond("GET", "/field/photos/p1").head.status.code == 404)
        #expect(offset(append(Array("abc".utf8), at: 0, isLast: false)) == "204 3 ?0")
        // A repetition is at another offset.
        #expect(offset(append(Array("abc".utf8), at: 0, isLast: false)) == "409 3 ?0")
        #expect(service.records(of: "ada").first { $0.key == "p1" } == nil)
        #expect(offset(append(Array("def".utf8), at: 3, isLast: true)) == "204 6 ?1")
        #expect(respond("GET", "/field/photos/p1").head.status.code == 200)
        #expect(service.records(of: "ada").first { $0.key == "p1" }?.text == "6")
        #expect(respond("DELETE", "/field/photos/p1").head.status.code == 409)
    }

    @Test func aPhotoWithAnotherDigestBeginsAgain() {
        announce(Array("abcdef".utf8))
        #expect(offset(append(Array("abcdeX".utf8), at: 0, isLast: true)) == "422 0 ?0")
        #expect(offset(append(Array("abcdef".utf8), at: 0, isLast: true)) == "204 6 ?1")
    }

    @Test func anUploadThatIsTooLongOrTooShortIsA400() {
        announce(Array("abcdef".utf8))
        #expect(offset(append(Array("abc".utf8), at: 0, isLast: true)) == "400 0 ?0")
        #expect(offset(append(Array("abcdefg".utf8), at: 0, isLast: false)) == "400 0 ?0")
        #expect(respond("PATCH", "/field/photos/p1").head.status.code == 400)
    }

    // MARK: Files

    @Test func rangesOfAFileAreItsBytes() throws {
        let whole = respond("GET", "/field/files/f1")
        #expect(whole.head.status.code == 200 && whole.body.count == 100_000)
        #expect(String(validating: whole.body, as: UTF8.self) == nil)
        let digest = try #require(
            whole.head.headerFields[.init("Repr-Digest")!].flatMap { AttachmentDigest(field: $0) })
        #expect(digest == AttachmentDigest(of: whole.body))
        for (range, expected) in [
            ("0-0", 0..<1), ("10-", 10..<100_000), ("-5", 99_995..<100_000), ("99999-200000", 99_999..<100_000),
        ] {
            let part = respond("GET", "/field/files/f1", ["Range": "bytes=\(range)"])
            #expect(part.head.status.code == 206 && part.body == Array(whole.body[expected]))
            #expect(
                part.head.headerFields[.contentRange]
                    == "bytes \(expected.lowerBound)-\(expected.upperBound - 1)/100000")
        }
    }

    @Test func aRangeOutsideOfTheFileIsA416AndAMalformedOneIsIgnored() {
        #expect(respond("GET", "/field/files/f1", ["Range": "bytes=100000-"]).head.status.code == 416)
        for range in ["bytes=5-4", "bytes=-", "bytes=a-b", "lines=1-2", "bytes=0-1,3-4"] {
            #expect(respond("GET", "/field/files/f1", ["Range": range]).head.status.code == 200)
        }
        let other = ["Range": "bytes=0-9", "If-Range": "\"other\""]
        #expect(respond("GET", "/field/files/f1", other).head.status.code == 200)
    }

    // MARK: Events

    @Test func eventsAreTheChangesSinceTheLastOne() throws {
        let cursor =
            try #require(JSONText.parse(respond("GET", "/field/payload").body))["cursor"].number.map { Int($0) } ?? 0
        func events(_ last: Int) -> String {
            String(decoding: respond("GET", "/field/events", ["Last-Event-ID": "\(last)"]).body, as: UTF8.self)
        }
        #expect(events(cursor) == "retry: 30000\n\n")
        _ = push(group(start, "\"answers\":[\(answer("a1", at: start))]"))
        #expect(events(cursor).contains("id: \(cursor + 1)\nevent: change\n"))
        #expect(respond("GET", "/field/events").head.headerFields[.contentType] == "text/event-stream")
    }
}
