import Scenario
import Testing

@testable import ConfigFiles

/// The migration of files with renamed words.
@Suite struct FileMigrationTests {
    private static func migrated(_ text: String, file: String = "s.yaml") throws -> FileMigration {
        try FileMigration(text, file: file)
    }

    /// Every renamed word of the format, with comments, an odd layout, quotes, variants and a matrix.
    private static let old = """
        # The first line.
        scenario: 1
        name: old
        heal: 15m      # restores the links
        matrix:
          point: [ queued , "committed" ]   # both ends
          effect: [cut, { hold: 5s }]
        devices:
          A: { user: ada }
          F: { user: ada, client: field, settings: { network: wlan } }
        network:
          A:
            0s: wifi
            10s: refuse   # nobody listens
            20s: { link: refuse, interface: cell }
            30s:
              # In lines.
              flap: [{ 3g: 2s }, { refuse: 2s }]
              jitter: 50%
            40s: updead
          F: { 0s: { link: downdead, interface: wlan } }
        faults:
          - { request: PUT n1, chance: 2 %, point: $point, then: $effect }
          -   request: POST any
              point:   'partly-answered'
              then: { reply: { status: 503, body: "cut, mute and hold" } }
          - { request: GET any, point: any, then: mute }
        workload:
          - { from: 1s, to: 9s, every: 1s, by: [A], over: 3, mix: { edit: 1 } }
        expect:
          traffic:
            - { request: PUT n1, answers: [lost, 2xx], during: refuse }
          sometimes:
            - { fault: { point: answered } }
        variants:
          trickle:
            faults: [{ request: PUT n1, point: answer-started, then: { trickle: 100 } }]
        # The last line: queued, cut and heal stay in comments.

        """

    private static let new = """
        # The first line.
        scenario: 1
        name: old
        restore: 15m      # restores the links
        matrix:
          point: [ before-request , "before-response" ]   # both ends
          effect: [reset, { delay: 5s }]
        devices:
          A: { user: ada }
          F: { user: ada, client: field, settings: { network: unmetered } }
        network:
          A:
            0s: wifi
            10s: { link: offline, signalled: false }   # nobody listens
            20s: { signalled: false, link: offline, interface: cellular }
            30s:
              # In lines.
              signalled: false
              flap: [{ 3g: 2s }, { offline: 2s }]
              jitter: 50%
            40s: uplink-loss
          F: { 0s: { link: downlink-loss, interface: wifi } }
        faults:
          - { request: PUT n1, probability: 2 %, point: $point, then: $effect }
          -   request: POST any
              point:   'mid-response'
              then: { respond: { status: 503, body: "cut, mute and hold" } }
          - { request: GET any, point: any, then: stall }
        workload:
          - { from: 1s, to: 9s, every: 1s, by: [A], notes: 3, mix: { edit: 1 } }
        expect:
          traffic:
            - { request: PUT n1, responses: [lost, 2xx], during: offline }
          sometimes:
            - { fault: { point: after-response } }
        variants:
          trickle:
            faults: [{ request: PUT n1, point: after-response-head, then: { throttle: 100 } }]
        # The last line: queued, cut and heal stay in comments.

        """

    @Test func everyRenamedWordIsReplacedAtItsPlace() throws {
        let result = try Self.migrated(Self.old)
        #expect(result.text == Self.new)
        #expect(result.warnings.isEmpty)
        let texts = result.replacements.map(\.description)
        #expect(texts.first == "s.yaml:4:1: 'heal' -> 'restore'")
        #expect(texts.contains("s.yaml:14:10: 'refuse' -> '{ link: offline, signalled: false }'"), "\(texts)")
        #expect(texts.contains("s.yaml:15:12: added 'signalled: false'"), "\(texts)")
    }

    @Test func aMigratedFileHasNothingLeftToReplace() throws {
        let again = try Self.migrated(Self.new)
        #expect(again.text == Self.new && again.replacements.isEmpty)
    }

    @Test func lineEndsAndAByteOrderMarkAreKept() throws {
        let text = "\u{FEFF}scenario: 1\r\nheal: 5s\r\n"
        #expect(try Self.migrated(text).text == "\u{FEFF}scenario: 1\r\nrestore: 5s\r\n")
    }

    /// What was called `refuse` was not signalled, and packets that are lost were.
    @Test func aFlapWithAnOutageAndRefusedConnectionsIsReported() throws {
        let text = "scenario: 1\nnetwork: { A: { 0s: { flap: [{ 100-loss: 2s }, { refuse: 2s }] } } }\n"
        let result = try Self.migrated(text)
        #expect(result.text == text.replacing("refuse", with: "offline"))
        #expect(result.warnings.map(\.location.line) == [2])
    }

    @Test func aKeyThatIsThereIsChanged() throws {
        let text = "scenario: 1\nnetwork: { A: { 0s: { link: refuse, signalled: sometimes } } }\n"
        #expect(
            try Self.migrated(text).text
                == "scenario: 1\nnetwork: { A: { 0s: { link: offline, signalled: false } } }\n")
    }

    /// The word is new in these files: it means what it says.
    @Test func offlineStaysAsItIs() throws {
        let text = "scenario: 1\nnetwork: { A: { 0s: offline, 5s: { flap: [{ offline: 1s }, { wifi: 1s }] } } }\n"
        #expect(try Self.migrated(text).replacements.isEmpty)
    }

    @Test func aTimelineHasNoInterface() throws {
        let text =
            "timeline: 1\nname: t\nat:\n  0s: refuse  # r\n  5s: { ramp: updead, over: 3s }\n  9s: { flap: [{ downdead: 1s }] }\n"
        #expect(
            try Self.migrated(text).text
                == "timeline: 1\nname: t\nat:\n  0s: offline  # r\n  5s: { ramp: uplink-loss, over: 3s }\n  9s: { flap: [{ downlink-loss: 1s }] }\n"
        )
    }

    @Test(arguments: ["access: refuse", "access: { value: refuse, source: s, grade: judgement }"])
    func theConnectionPolicyOfAProfileIsReplaced(_ line: String) throws {
        let text = "profile: 1\n" + line + "\n"
        #expect(try Self.migrated(text).text == text.replacing("refuse", with: "offline"))
    }

    @Test func theTextsOfResultsAreReplaced() throws {
        let text = #"""
            {"type":"run","version":1}
            {"checks":[{"check":"traffic: PUT n1 from A, answers lost 2xx","reason":"cut"}],"replay":["--lean","cut,held"]}
            {"cells":[["fault","cut","committed","PUT"],["merge","PUT","clean","cut"]],"name":"a\"cut"}

            """#
        let result = try Self.migrated(text, file: "r.jsonl")
        #expect(
            result.text == #"""
                {"type":"run","version":1}
                {"checks":[{"check":"traffic: PUT n1 from A, responses lost 2xx","reason":"cut"}],"replay":["--bias","reset,delayed"]}
                {"cells":[["fault","reset","before-response","PUT"],["merge","PUT","clean","cut"]],"name":"a\"cut"}

                """#)
        #expect(try Self.migrated(result.text).replacements.isEmpty)
    }

    @Test func anotherFileIsRejected() {
        #expect(throws: FileError.self) { try Self.migrated("a: 1\n") }
        #expect(throws: FileError.self) { try Self.migrated("scenario: [\n") }
    }

    /// Everything that is part of the program is written with the new words.
    @Test(arguments: ["scenarios", "timelines", "profiles"]) func theBuiltInFilesHaveNoRenamedWord(_ folder: String)
        throws
    {
        let files = EmbeddedFile.all(in: folder)
        #expect(!files.isEmpty)
        for file in files {
            let found = try Self.migrated(file.text, file: file.name).replacements
            #expect(found.isEmpty, "\(found)")
        }
    }
}
