import Determinism
import Scenario
import Testing

@testable import ConfigFiles

/// Actions of steps: stale changes, requests sent as given, and ways to resolve a conflict.
@Suite struct ScenarioActionTests {
    private static let head = """
        scenario: 1
        name: actions
        server: { notes: { n1: { title: Milk } } }
        writers: { W: { user: ada } }
        devices: { A: { user: ada } }
        network: { A: { 0s: wifi } }
        expect: { finally: { server: { count: 1 } } }

        """

    private static func actions(_ steps: String) throws(FileError) -> [Scenario.Action] {
        try ScenarioFile(parsing: head + "steps: [\(steps)]", file: "s.yaml").scenario.steps.compactMap(
            \.action?.action)
    }

    @Test func staleChangesAreRead() throws {
        let actions = try Self.actions(
            """
            { at: 1s, W: { edit: n1, text: a } }, { at: 2s, W: { edit: n1, text: b, stale: true } },
              { at: 3s, W: { delete: n1, stale: true } }, { at: 4s, W: { delete: n1, stale: false } }
            """)
        #expect(
            actions == [
                .edit(row: "n1", title: nil, text: "a"), .editStale(row: "n1", title: nil, text: "b"),
                .deleteStale(row: "n1"), .delete(row: "n1"),
            ])
    }

    @Test func rawRequestsAreRead() throws {
        let actions = try Self.actions(
            "{ at: 1s, W: { raw: { method: PUT, path: '/notes/{n1}', headers: { If-Match: '\"2\"' }, body: '{}' } } }")
        let request = Scenario.RawRequest(
            method: "PUT", path: "/notes/{n1}", headers: [.init(name: "If-Match", value: "\"2\"")], body: "{}")
        #expect(actions == [.send(request)])
        #expect(request.rows == ["n1"])
        #expect(request.target { $0 == "n1" ? "77" : nil } == "/notes/77")
        #expect(request.target { _ in nil } == nil)
        #expect(Scenario.RawRequest(method: "GET", path: "/a{b").rows == [])
    }

    @Test func everyWayToResolveIsRead() throws {
        let actions = try Self.actions(
            """
            { at: 1s, A: { resolve: n1, with: theirs } }, { at: 2s, A: { resolve: n1, with: mine } },
              { at: 3s, A: { resolve: n1, with: delete } }, { at: 4s, A: { resolve: n1, with: write, text: c } }
            """)
        #expect(
            actions == [
                .choose(row: "n1", .theirs), .choose(row: "n1", .mine), .choose(row: "n1", .delete),
                .resolve(row: "n1", title: nil, text: "c"),
            ])
    }

    @Test func callsAndVersionsAreRead() throws {
        let actions = try Self.actions(
            """
            { at: 1s, A: { call: retry, with: { note: n1 } } }, { at: 2s, A: { upgrade: 2 } },
              { at: 3s, A: { open: list } }, { at: 4s, A: { open: n1 } }, { at: 5s, A: { pin: n1 } }
            """)
        #expect(
            actions == [
                .call(name: "retry", arguments: [.init(name: "note", value: "n1")]), .upgrade(version: 2),
                .open(row: nil), .open(row: "n1"), .pin(row: "n1"),
            ])
        #expect(actions.map(\.subject) == ["n1", nil, nil, "n1", "n1"])
        #expect(actions[0].description == "calls retry of n1")
    }

    /// The reference client has no other screens, controls, messages and opacities; a program may have any.
    @Test func valuesThatTheReferenceClientNeverShowsAreReported() throws {
        func problems(_ state: String, client: String = "reference") throws -> [String] {
            let text = Self.head.replacing("A: { user: ada }", with: "A: { user: ada, client: \(client) }")
                .replacing("expect: {", with: "expect: { sometimes: [{ A: \(state) }],")
            do {
                _ = try ScenarioFile(parsing: text, file: "s.yaml")
                return []
            } catch {
                return error.problems.map(\.message)
            }
        }
        let wrong: [(state: String, message: String)] = [
            ("{ screen: lst }", "no screen 'lst'; did you mean 'list'? (known: list, a note)"),
            ("{ screen: n2 }", "no screen 'n2'; did you mean 'n1'?"),
            ("{ control: rety }", "no control 'rety'; did you mean 'retry'?"),
            ("{ dialog: conflict }", "no dialog 'conflict' (known: none)"),
            ("{ toast: { not: no-connections } }", "no toast 'no-connections'; did you mean 'no-connection'?"),
            ("{ row: n1, opacity: 0.25 }", "no opacity '0.25'; did you mean '0.5'? (known: 1, 0.5)"),
        ]
        for (state, message) in wrong {
            let found = try problems(state)
            #expect(found.count == 1 && found[0].contains(message), "\(state): \(found)")
            #expect(try problems(state, client: "{ run: [./app] }").isEmpty)
        }
        #expect(try problems("{ row: n1, opacity: 0.50, strike: true, screen: list, control: sync }").isEmpty)
    }

    @Test(arguments: [
        ("{ at: 1s, W: { create: n2, stale: true } }", "8:43: a creation has no base"),
        ("{ at: 1s, W: { edit: n1, text: a, stale: maybe } }", "8:50: 'maybe': expected true or false"),
        ("{ at: 1s, A: { edit: n1, text: a, stale: true } }", "8:43: unknown key 'stale' in an action"),
        ("{ at: 1s, W: { raw: { path: /notes } } }", "8:29: a request needs 'method'"),
        ("{ at: 1s, W: { raw: { method: BREW, path: /notes } } }", "8:39: 'BREW': expected GET, HEAD, POST"),
        ("{ at: 1s, W: { raw: { method: GET, path: notes } } }", "8:50: expected a path that begins with '/'"),
        ("{ at: 1s, W: { raw: { method: GET, path: '/a b' } } }", "8:50: expected a path"),
        ("{ at: 1s, W: { raw: { method: GET, path: '/{n9}' } } }", "8:50: no note is called 'n9'; did you mean 'n1'?"),
        (
            "{ at: 1s, W: { raw: { method: GET, path: /, headers: { 'a b': c } } } }",
            "8:64: 'a b' is not the name of a header field"
        ),
        (
            "{ at: 1s, W: { raw: { method: GET, path: /, headers: { a: \"b\\nc\" } } } }",
            "8:67: expected a value without control characters"
        ),
        ("{ at: 1s, A: { resolve: n1, with: ours } }", "8:43: 'ours': expected theirs, mine, write or delete"),
        ("{ at: 1s, A: { resolve: n1, with: write } }", "8:43: 'with: write' needs 'title' or 'text'"),
        ("{ at: 1s, A: { resolve: n1, with: mine, text: a } }", "8:43: 'with: mine' has no 'title' and no 'text'"),
        (
            "{ at: 1s, A: { call: rety, with: { note: n1 } } }",
            "8:30: the reference client has no call 'rety'; did you mean 'retry'?"
        ),
        ("{ at: 1s, A: { call: retry } }", "8:30: 'retry' needs its note"),
        ("{ at: 1s, A: { call: retry, with: { note: n9 } } }", "8:51: no note is called 'n9'; did you mean 'n1'?"),
        ("{ at: 1s, A: { call: dismiss, with: { note: n1, now: 1 } } }", "8:57: 'dismiss' has no argument 'now'"),
        ("{ at: 1s, A: { upgrade: 3 } }", "8:33: the reference client has no version 3; it has 1 and 2"),
        ("{ at: 1s, A: { open: lst } }", "8:30: no note is called 'lst'"),
        ("{ at: 1s, A: { resolve: n1 } }", "8:22: 'resolve' needs 'title' or 'text', or 'with'"),
    ]) func anInvalidActionIsReportedWithItsLocation(steps: String, problem: String) {
        do {
            _ = try Self.actions(steps)
            Issue.record("accepted")
        } catch {
            #expect(error.problems.count == 1)
            #expect(error.description.hasPrefix("s.yaml:" + problem), "\(error)")
        }
    }

    @Test func backupsAndDisksAreRead() throws {
        let actions = try Self.actions(
            """
            { at: 1s, W: { server: backup } }, { at: 2s, W: { server: restore } }, { at: 3s, A: { disk: full } },
              { at: 4s, A: { disk: { delay: 2s } } }, { at: 5s, A: { disk: normal } },
              { at: 6s, A: { clock: { wall: -400h } } }, { at: 7s, A: { clock: { wall: +1d12h } } }
            """)
        let expected: [Scenario.Action] = [
            .server(.backup), .server(.restore), .disk(.full), .disk(.slow(.seconds(2))), .disk(.normal),
            .clock(shift: Nanoseconds.zero - Nanoseconds.seconds(1_440_000)), .clock(shift: .seconds(129_600)),
        ]
        #expect(actions == expected)
    }

    @Test(arguments: [
        ("{ at: 1s, A: { sign-in: bo } }", "the reference client has one account for each store"),
        ("{ at: 1s, A: { clock: { wall: +367d } } }", "up to 366 days"),
        ("{ at: 1s, A: { disk: {} } }", "delay"),
        ("{ at: 1s, A: { disk: half } }", "expected normal or full"),
        ("{ at: 1s, W: { server: stop } }", "expected backup or restore"),
        ("{ at: 1s, A: { sync: now }, since: m }", "no mark is called 'm'"),
        ("{ at: 1s, mark: m }, { at: 2s, A: { sync: now }, since: m }", "'since' has no effect without 'when'"),
    ]) func whatIsNotPossibleIsAnError(_ steps: String, _ message: String) {
        #expect {
            try Self.actions(steps)
        } throws: {
            "\($0)".contains(message)
        }
    }

    @Test func aStateAfterAMarkIsRead() throws {
        let text = "{ at: 1s, mark: m }, { when: { A: { outbox: 0 } }, since: m, within: 5s, A: { sync: now } }"
        let steps = try ScenarioFile(parsing: Self.head + "steps: [\(text)]", file: "s.yaml").scenario.steps
        #expect(steps.last?.since == "m")
        #expect(steps.last?.description == "step: A syncs when A outbox 0 after m")
    }
}
