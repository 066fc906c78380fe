import Determinism
import Testing

@testable import ConfigFiles
@testable import Scenario

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
        "{ url: \"https://localhost\" }", "{ url: \"https://a.test\" }", "{ url: localhost }",
        "{ run: [a], ready: health }",
        "{ run: [a], ready: \"https://localhost/\" }", "{ run: [a], url: \"http://localhost\" }", "{ run: [] }",
    ]) func aServerThatCannotBeReachedIsAnError(_ server: String) {
        #expect(!Self.problems(server: server, Self.traffic).isEmpty)
    }

    @Test(arguments: [
        ("{ tls: {} }", "'tls' needs a server with 'run'"),
        ("{ url: \"http://localhost\", tls: {} }", "'tls' needs a server with 'run'"),
        ("{ url: \"https://a.test\" }", "for servers of this machine only"),
        ("{ run: [a], tls: {}, ready: /health }", "leave 'ready' out"),
        ("{ run: [a], tls: { ca: x.pem, insecure: true } }", "'ca' has no effect"),
        ("{ run: [a], tls: { key: x.pem } }", "key"),
    ]) func settingsOfTLSThatDoNotGoTogetherAreErrors(_ server: String, _ message: String) {
        let found = Self.problems(client: "{ run: [app] }", server: server, Self.traffic)
        #expect(found.contains { $0.contains(message) }, "\(found)")
    }

    @Test func theClientsOfAServerWithTLSArePrograms() throws {
        for server in ["{ run: [a], tls: {} }", "{ url: \"https://localhost:8443\" }"] {
            #expect(Self.problems(client: "{ run: [app] }", server: server, Self.traffic).isEmpty)
            let found = Self.problems(server: server, Self.traffic)
            #expect(found.contains { $0.contains("the client of A speaks no TLS") }, "\(found)")
            let writers = Self.problems(
                client: "{ run: [app] }", server: server, "writers: { W: { user: ada } }\n" + Self.traffic)
            #expect(writers.contains { $0.contains("no 'writers'") }, "\(writers)")
        }
    }

    @Test func aRelativeFileOfAuthoritiesBeginsAtTheFolderOfTheFile() throws {
        let text = """
            scenario: 1
            name: programs
            server: { run: [a], tls: { ca: ca.pem } }
            devices: { A: { user: ada, client: { run: [app] } } }
            network: { A: { 0s: wifi } }
            \(Self.traffic)
            """
        let scenario = try ScenarioFile(parsing: text, file: "/tests/x.yaml").scenario
        #expect(scenario.tls?.path == "/tests/ca.pem" && scenario.speaksTLS && scenario.realTimeReason != nil)
        #expect(Scenario.ServerTLS(authorities: "/ca.pem", folder: "/tests/").path == "/ca.pem")
        #expect(Scenario.ServerTLS(authorities: "ca.pem").path == "ca.pem")
    }

    /// Requests of a program do not follow from the steps.
    @Test func aFaultMayMatchWhatAProgramSends() {
        let fault = "faults: [{ request: POST any, point: before-response, then: reset }]\n" + Self.traffic
        #expect(!Self.problems(fault).isEmpty)
        #expect(Self.problems(client: "{ run: [app] }", fault).isEmpty)
    }

    /// A program does not report what it stores.
    @Test func aFaultAtStoredIsRefusedForPrograms() throws {
        let fault =
            "faults: [{ request: PUT any, point: stored, then: reset }]\nsteps: [{ at: 1s, A: { create: n1 } }, "
            + "{ at: 2s, A: { edit: n1, text: a } }]\n" + Self.traffic
        #expect(Self.problems(fault).isEmpty)
        #expect(
            Self.problems(client: "{ run: [app] }", fault) == [
                "x.yaml:6:10: the program of A does not report what it stores, so no fault is possible at 'stored'"
            ])
        // Of two clients one may have the fault, and `any` draws another point.
        #expect(Self.problems(client: "{ run: [app] }", fault.replacing("stored", with: "any")).isEmpty)
        let both = """
            scenario: 1
            name: programs
            devices: { A: { user: ada, client: { run: [app] } }, B: { user: ada } }
            network: { A: { 0s: wifi }, B: { 0s: wifi } }
            \(fault)
            """
        let scenario = try ScenarioFile(parsing: both, file: "x.yaml").scenario
        var counters = FaultCounters(scenario, seed: 1)
        #expect(counters.requested(by: "A", method: "PUT", row: "n1") == nil)
        #expect(counters.requested(by: "B", method: "PUT", row: "n1")?.fault == 0)
        let any = try ScenarioFile(
            parsing: both.replacing("stored", with: "any").replacing("any, then", with: "any, times: 60, then"),
            file: "x.yaml"
        ).scenario
        counters = FaultCounters(any, seed: 1)
        let points = Set((0..<60).compactMap { _ in counters.requested(by: "A", method: "PUT", row: nil)?.point })
        #expect(points.count > 4 && !points.contains(.stored))
    }

    /// What a program does not publish cannot be checked; what it publishes is.
    @Test func aCheckOfAnUnpublishedValueIsNotPossible() throws {
        let text = """
            scenario: 1
            name: programs
            devices: { A: { user: ada, client: { run: [app] } } }
            server: { notes: { n1: { text: a } } }
            network: { A: { 0s: wifi } }
            expect:
              always: [{ A: { screen: home } }, { A: { toast: none } }, { A: { row: n1, opacity: 0.4 } }]
              finally: { A: { row: n1, strike: false } }
            """
        let scenario = try ScenarioFile(parsing: text, file: "x.yaml").scenario
        func verdict(_ opacity: String?, _ screen: History.ScreenState) -> Verdict {
            let row = History.DeviceState.Row(
                name: "n1", title: nil, text: "a", icon: .plain, isDeleted: false, kept: ["a"], opacity: opacity)
            var history = History()
            history.append(.device("A", .init(rows: [row], outbox: 0, screen: screen)), at: .zero)
            return Verdict(scenario, history)
        }
        let some = verdict("0.4", .init(name: "home"))
        #expect(
            some.impossible.map(\.reason) == [
                "the program of A has published no 'toast'", "the program of A has published no 'strike'",
            ])
        #expect(some.result == .pass)
        #expect(verdict("1", .init(name: "home")).result == .fail)
        #expect(verdict("0.4", .init(name: "other", toast: "none")).result == .fail)
        #expect(verdict(nil, .init()).impossible.count == 4)
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
