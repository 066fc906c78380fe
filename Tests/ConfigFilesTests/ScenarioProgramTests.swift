import ConfigFiles
import ScenarioModel
import Testing

/// Files with programs as clients and servers.
@Suite struct ScenarioProgramTests {
    private static func problems(
        client: String = "reference", server: String = "{}", _ rest: String, file: String = "x.yaml"
    ) -> [String] {
        let text = """
            scenario: 1
            name: programs
            server: \(server)
            devices: { A: { user: ada, client: \(client) } }
            network: { A: { 0s: wifi } }
            \(rest)
            """
        return ScenarioFile.problems(in: text, file: file).map(\.description)
    }

    private static let traffic = "expect: { traffic: [{ request: any, from: A, count: 0 }] }"

    @Test func aProgramWithoutAnAdapterCannotAct() {
        let client = "{ run: [app], adapter: none }"
        let found = Self.problems(
            client: client,
            """
            steps:
              - { at: 1s, A: { create: n1 } }
              - { when: { A: { outbox: 0 } }, within: 1s, mark: done }
              - { at: 2s, A: { kill: now } }
              - { at: 3s, A: { start: again } }
            \(Self.traffic)
            """)
        #expect(
            found.filter { !$0.contains("warning") && $0.contains("adapter") } == [
                "x.yaml:7:5: the program of A has no adapter, so it cannot be told to act",
                "x.yaml:8:5: the program of A has no adapter, so its state is not known",
            ])
    }

    @Test func whatCannotBeEvaluatedIsAWarning() {
        let found = Self.problems(
            server: "{ run: [server] }", "expect: { finally: { server: { count: 1 }, agree: [A, server] } }")
        #expect(found.count == 2)
        #expect(found.allSatisfy { $0.contains("the notes of a server other than the built-in one are not read") })
        #expect(Self.problems(client: "{ run: [app] }", "expect: { finally: { A: { outbox: 0 } } }").isEmpty)
    }

    @Test(arguments: [
        "{ url: \"https://localhost\" }", "{ url: localhost }", "{ run: [a], ready: health }",
        "{ run: [a], ready: \"https://localhost/\" }", "{ run: [a], url: \"http://localhost\" }", "{ run: [] }",
    ]) func aServerThatCannotBeReachedIsAnError(_ server: String) {
        #expect(!Self.problems(server: server, Self.traffic).isEmpty)
    }

    /// Requests of a program do not follow from the steps.
    @Test func aFaultMayMatchWhatAProgramSends() {
        let fault = "faults: [{ request: POST any, point: committed, then: cut }]\n" + Self.traffic
        #expect(!Self.problems(fault).isEmpty)
        #expect(Self.problems(client: "{ run: [app] }", fault).isEmpty)
    }

    @Test func aProgramRunsInTheFolderOfItsFile() throws {
        let text = """
            scenario: 1
            name: programs
            devices: { A: { user: ada, client: { run: [./app, "-x"] } } }
            network: { A: { 0s: wifi } }
            \(Self.traffic)
            """
        let scenario = try ScenarioFile(parsing: text, file: "some/folder/x.yaml").scenario
        let program = Scenario.Program(["./app", "-x"], folder: "some/folder/")
        #expect(scenario.devices.first?.client == .run(program, adapter: .lines))
        #expect(scenario.realTimeReason == "the client of A is a program")
        let replaced = scenario.replacingClients(["A": Scenario.Program(["other"])])
        #expect(replaced.devices.first?.client == .run(Scenario.Program(["other"]), adapter: .lines))
    }
}
