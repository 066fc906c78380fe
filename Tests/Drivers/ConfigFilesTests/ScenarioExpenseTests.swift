import ConfigFiles
import Scenario
import Testing

/// What scenario files say about the expense app.
@Suite struct ScenarioExpenseTests {
    private static func text(
        _ parts: String = "", records: String = "{ r1: { kind: report }, e1: { kind: expense, in: r1 } }",
        client: String = "expense"
    ) -> String {
        """
        scenario: 1
        name: test
        server: { records: \(records) }
        devices: { X: { user: ada, client: \(client) } }
        network: { X: { 0s: wifi } }
        \(parts.contains("expect:") ? parts : parts + "\nexpect: { finally: { server: { count: 2 } } }")
        """
    }

    private static func problems(_ text: String) -> [String] {
        do {
            _ = try ScenarioFile(parsing: text, file: "s.yaml")
            return []
        } catch {
            return error.problems.map { "\($0)" }
        }
    }

    @Test func recordsAndTheClientAreRead() throws {
        let scenario = try ScenarioFile(
            parsing: Self.text(
                records:
                    "{ r1: { kind: report, title: Trip }, e1: { kind: expense, in: r1, text: '12.00', approved: true } }"
            ),
            file: "s.yaml"
        ).scenario
        #expect(scenario.devices.map(\.client) == [.app(.expense)] && scenario.apps == [.expense])
        #expect(
            scenario.records == [
                .init(row: "r1", kind: "report", title: "Trip"),
                .init(row: "e1", kind: "expense", parent: "r1", text: "12.00", isApproved: true),
            ])
    }

    @Test func aWriterChangesRecordsOfTheAppThatTheServerHasAtTheStart() {
        func problems(_ step: String) -> [String] {
            Self.problems(
                Self.text(
                    """
                    writers: { W: { user: ada } }
                    steps:
                      - { at: 1s, X: { create: e2, text: "1" } }
                      - \(step)
                    """)
            )
        }
        #expect(problems("{ at: 2s, W: { edit: e1, text: '2' } }") == [])
        #expect(problems("{ at: 2s, W: { delete: e1 } }") == [])
        #expect(
            problems("{ at: 2s, W: { delete: e2 } }") == [
                "s.yaml:9:5: 'W deletes e2' is impossible: 'e2' is a record of the expense app, which a writer does not "
                    + "have; let a device with 'client: expense' act, or send a request with 'raw'"
            ], "a record that a step creates")
        #expect(problems("{ at: 2s, W: { create: n1, text: one } }") == [], "a note of the writer's own")
        #expect(problems("{ at: 2s, W: { raw: { method: GET, path: '/expense/records/{e1}' } } }") == [])
    }

    @Test func callsAndStatesAreRead() throws {
        let scenario = try ScenarioFile(
            parsing: Self.text(
                """
                steps:
                  - { at: 1s, X: { call: fill, with: { to: Bo, amount: "20" } } }
                  - { at: 2s, X: { call: dismiss, with: { note: e1 } } }
                  - { at: 3s, X: { call: balance } }
                expect:
                  always:
                    - X: { row: e1, error: none, marker: { not: red } }
                    - X: { marker: none, error: { not: offline }, field: to=Bo }
                """), file: "s.yaml"
        ).scenario
        #expect(
            scenario.steps.compactMap { $0.action?.action } == [
                .call(name: "fill", arguments: [.init(name: "to", value: "Bo"), .init(name: "amount", value: "20")]),
                .call(name: "dismiss", arguments: [.init(name: "note", value: "e1")]),
                .call(name: "balance", arguments: []),
            ])
        #expect(
            scenario.expectations.map(\.description) == [
                "always: X e1 error none, marker not red", "always: X error not offline, marker none, field to=Bo",
            ])
    }

    @Test(arguments: [
        ("steps: [{ at: 1s, X: { resolve: e1, text: a } }]", "the expense app has no action 'resolve' (known: create,"),
        ("steps: [{ at: 1s, X: { upgrade: 2 } }]", "the expense app has no action 'upgrade'"),
        ("steps: [{ at: 1s, X: { call: submt } }]", "the expense app has no call 'submt'; did you mean 'submit'?"),
        (
            "steps: [{ at: 1s, X: { call: fill, with: { too: Bo } } }]",
            "'fill' has no argument 'too' (known: amount, memo, to, title)"
        ),
        ("steps: [{ at: 1s, X: { call: submit, with: { to: Bo } } }]", "'submit' has no argument 'to' (known: none)"),
        ("steps: [{ at: 1s, X: { call: dismiss } }]", "'dismiss' needs its record, such as 'with: { note: e1 }'"),
        ("expect: { always: [{ X: { screen: balanc } }] }", "no screen 'balanc'; did you mean 'balance'?"),
        ("expect: { always: [{ X: { row: e1, marker: blue } }] }", "'blue': expected none or red"),
        ("expect: { always: [{ X: { toast: no-connection } }] }", "the expense app has no toast 'no-connection'"),
    ]) func mistakesAreReported(_ parts: String, _ message: String) {
        let found = Self.problems(Self.text(parts))
        #expect(found.contains { $0.contains(message) }, "\(found)")
    }

    @Test(arguments: [
        ("{ e1: { kind: expense } }", "a record of the kind 'expense' needs its 'report'"),
        ("{ e1: { kind: expense, in: r1 }, r1: { kind: report } }", "a record comes before those in it"),
        ("{ r1: { kind: report, approved: true } }", "only an expense has 'approved'"),
        ("{ r1: { kind: report }, c1: { kind: chat, in: r1 } }", "a record of the kind 'chat' has no 'in'"),
        ("{ r1: { kind: note } }", "'note': expected report, expense, chat"),
    ]) func mistakesInRecordsAreReported(_ records: String, _ message: String) {
        let found = Self.problems(Self.text(records: records))
        #expect(found.count == 1 && found[0].contains(message), "\(found)")
    }

    @Test func recordsNeedTheExpenseAppAndTheReferenceClientHasNoMarkers() {
        #expect(
            Self.problems(Self.text(client: "reference")).contains {
                $0.contains("no device has a client such as 'client: expense'")
            })
        let found = Self.problems(
            """
            scenario: 1
            name: test
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            expect: { always: [{ A: { marker: none } }] }
            """)
        #expect(found.count == 1 && found[0].contains("the reference client has no 'marker'"), "\(found)")
    }

    @Test func aFileThatIsWrittenIsReadTheSame() throws {
        let scenario = try ScenarioFile(
            parsing: Self.text("expect: { always: [{ X: { row: e1, error: 'a: b', marker: red } }] }"), file: "s.yaml"
        ).scenario
        let text = try ScenarioWriter.text(scenario)
        let again = try ScenarioFile(parsing: text, file: "t.yaml").scenario
        #expect(again.records == scenario.records && again.devices.map(\.client) == [.app(.expense)])
        #expect(again.expectations.map(\.description) == scenario.expectations.map(\.description))
    }
}
