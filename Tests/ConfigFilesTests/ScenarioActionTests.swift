import ScenarioModel
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
}
