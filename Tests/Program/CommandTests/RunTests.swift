import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// `slowlane run` with scenarios that take one or two seconds.
@Suite(.tags(.runs), .serialized, .timeLimit(.minutes(10))) struct RunTests {
    private static func file(_ folder: TemporaryFolder, _ text: String) throws -> String {
        let path = folder.path("short.yaml")
        try Data(text.utf8).write(to: URL(filePath: path))
        return path
    }

    private static let short = """
        scenario: 1
        name: short
        server: { notes: { n1: { title: Milk, text: two } } }
        devices: { A: { user: ada } }
        network: { A: { 0s: wifi } }
        steps: [{ at: 200ms, A: { edit: n1, text: three }, mark: edited }]

        """

    @Test func expectationsThatHoldPass() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.file(
            folder,
            Self.short + """
                expect:
                  traffic: [{ request: PUT n1, from: A, responses: [200] }]
                  finally: { server: { n1: { revision: 2, text: three } }, agree: [A, server] }
                """)
        let result = try await Command.run("run", path, "--live")
        #expect(result.status == 0, "\(result.output) \(result.errors)")
        #expect(result.output.contains("ok    traffic: PUT n1 from A, responses 200\n"))
        #expect(result.output.hasSuffix("short: pass\n"))
        #expect(result.errors.contains("A  PUT n1 -> 200 after "))
    }

    @Test func anExpectationThatFailsIsReported() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.file(
            folder, Self.short + "expect: { finally: { server: { n1: { revision: 3 } } } }")
        let result = try await Command.run("run", path, "--quiet")
        #expect(result.status == 1)
        #expect(result.output.hasPrefix("FAIL  short, seed 1, simulated, at 0."))
        #expect(result.output.contains(" s: finally: server n1 revision 3\n"))
        #expect(result.output.contains("\n      revision is 2\n"))
        #expect(result.output.contains("\n      in \(path):7:"))
        #expect(result.output.hasSuffix("\nshort: fail\n"))
        #expect(result.errors.isEmpty)
    }

    @Test func aFaultThatNeverFiresIsInconclusive() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.file(
            folder,
            Self.short + """
                faults: [{ request: PUT n1, nth: 2, point: before-response, then: reset }]
                expect: { finally: { server: { n1: { revision: 2 } } } }
                """)
        let result = try await Command.run("run", path)
        #expect(result.status == 3)
        #expect(result.output.contains("the fault never fired"))
        #expect(result.output.hasSuffix("short: inconclusive\n"))
    }

    /// An event that is late because the host was paused is inconclusive.
    @Test func aHostPauseIsInconclusive() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.file(
            folder,
            Self.short.replacingOccurrences(
                of: "edited }]", with: "edited }, { at: 900ms, A: { edit: n1, text: four } }]")
                + "expect: { eventually: [{ A: { row: n1, text: four }, by: 1s }] }")
        let command = try Command(["run", path, "--live"])
        _ = try await command.errors.line(with: "mark edited")
        command.signal(SIGSTOP)
        try await Task.sleep(for: .seconds(2))
        command.signal(SIGCONT)
        #expect(await command.end() == 3, "\(command.output.text) \(command.errors.text)")
        #expect(command.errors.text.contains("the host was paused for "))
        #expect(command.output.text.contains("; but the run was late by "))
    }

    @Test func aRequestWithALostResponseIsRetried() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.file(
            folder,
            Self.short + """
                faults: [{ request: PUT n1, point: before-response, then: reset }]
                expect:
                  traffic:
                    - { request: PUT n1, from: A, responses: [lost, 200] }
                    - { request: PUT n1, from: A, same: [body, idempotency-key] }
                  finally: { server: { n1: { revision: 2, text: three } } }
                """)
        let result = try await Command.run("run", path)
        #expect(result.status == 0, "\(result.output) \(result.errors)")
    }

    @Test func aKilledClientContinuesAfterItsRestart() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.file(
            folder,
            Self.short.replacingOccurrences(of: "0s: wifi", with: "0s: wifi, 100ms: 100-loss, 1s: wifi")
                .replacingOccurrences(
                    of: "mark: edited }",
                    with: "mark: edited }, { at: 400ms, A: { kill: now } }, { at: 700ms, A: { start: again } }")
                + "expect: { finally: { server: { n1: { revision: 2, text: three } }, agree: [A, server] } }")
        let result = try await Command.run("run", path)
        #expect(result.status == 0, "\(result.output) \(result.errors)")
    }

    /// Runs a scenario in both worlds in which a queued change must reach the server once, after a condition has
    /// ended.
    private static func expectSurvival(_ condition: String, then rest: String) async throws {
        let folder = try TemporaryFolder()
        let path = try file(
            folder,
            short.replacingOccurrences(of: "0s: wifi", with: "0s: wifi, 100ms: \(condition)")
                + rest + "\n"
                + "expect: { finally: { server: { n1: { revision: 2, text: three } }, agree: [A, server] } }")
        var result = try await Command.run("run", path, "--both")
        // A condition that ends at a time may end before the edit, if the host is paused.
        for _ in 0..<2 where result.status != 0 && result.output.contains("host paused") {
            result = try await Command.run("run", path, "--both")
        }
        #expect(result.status == 0, "\(result.output) \(result.errors)")
        let name = condition.prefix { $0 != "," }
        #expect(result.errors.contains("A  network: \(name)"))
    }

    /// Refused connections, a DNS failure, a captive portal, the loss of one direction.
    @Test(arguments: ["offline", "dns", "portal", "uplink-loss", "downlink-loss"])
    func connectionLevelFaultsAreSurvived(_ condition: String) async throws {
        try await Self.expectSurvival(condition + ", 1s: wifi", then: "")
    }

    /// All links are restored before the verdict; without `restore`, when the client has given up its request.
    @Test(arguments: ["100-loss", "offline", "dns", "portal", "uplink-loss", "downlink-loss"])
    func conditionsAtTheEndAreRemovedForTheVerdict(_ condition: String) async throws {
        try await Self.expectSurvival(condition, then: "restore: 1s")
    }

    /// The built-in scenarios pass, and fail with the mutants that they are written for.
    @Test func theBuiltInScenariosPassAndTheirMutantsFail() async throws {
        let lost = "create-retried-after-lost-response"
        let runs: [(arguments: [String], status: Int32, broken: String?)] = [
            (["create-offline-then-heal"], 0, nil), (["edit-conflict-after-subway"], 0, nil),
            ([lost, "--variant", "none"], 0, nil), ([lost, "--variant", "orig"], 0, nil),
            (
                ["edit-conflict-after-subway", "--mutant", "overwrites-on-conflict"], 1,
                "      eventually: A n1 icon conflict, by 35.0 s\n"
            ),
            (
                [lost, "--variant", "none", "--mutant", "posts-again-under-new-id"], 1,
                "      traffic: POST n1 from A, responses lost 2xx\n"
            ),
            (
                [lost, "--variant", "none", "--mutant", "drops-on-lost-response"], 1,
                "      traffic: POST n1 from A, responses lost 2xx\n"
            ),
            (["outage-30-min", "--variant", "none"], 0, nil),
            (
                ["outage-30-min", "--variant", "none", "--mutant", "no-backoff"], 1,
                "      1401 attempts of A in the outage at 10.0 s, 9 allowed\n"
            ),
        ]
        // The script `run` and the soak run them live.
        for run in runs {
            let command = try Command(["run", "--simulated", "--quiet"] + run.arguments)
            let status = await command.end()
            #expect(status == run.status, "\(run.arguments): \(command.output.text) \(command.errors.text)")
            #expect(
                run.broken.map(command.output.text.contains) != false, "\(run.arguments): \(command.output.text)")
        }
    }

    /// Processes differ in the order of sets and dictionaries, unless their hashing is deterministic.
    @Test func equalRunsOfDifferentProcessesHaveEqualDigests() async throws {
        let arguments = ["run", "edit-conflict-after-subway", "create-retried-after-lost-response"]
        func digests(_ command: Command) async -> [String] {
            #expect(await command.end() == 0, "\(command.output.text) \(command.errors.text)")
            // One line per run.
            return command.output.text.split(separator: "\n").filter { $0.contains("digest ") }.map(String.init)
        }
        let first = await digests(try Command(arguments))
        #expect(first.count == 3)
        for _ in 0..<3 { #expect(await digests(try Command(arguments)) == first) }
        let environment = ["SWIFT_DETERMINISTIC_HASHING=1", Command.binary.path]
        let deterministic = try Command(environment + arguments, binary: URL(filePath: "/usr/bin/env"))
        #expect(await digests(deterministic) == first)
    }

    @Test func invalidFilesAndArgumentsAreReported() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.file(folder, "scenario: 1\nname: x\n")
        let broken = try await Command.run("run", path)
        #expect(broken.status == 65)
        #expect(broken.errors.contains("\(path):1:1: 'devices' is missing"))
        let unknown = try await Command.run("run", "create-offline-then-hael")
        #expect(unknown.status == 64)
        #expect(unknown.errors.contains("did you mean create-offline-then-heal?"))
        #expect(try await Command.run("run", "edit-conflict-after-subway", "--mutant", "x").status == 64)
        #expect(try await Command.run("run", "edit-conflict-after-subway", "--variant", "x").status == 64)
    }

    @Test func aSignalEndsARun() async throws {
        let command = try Command(["run", "create-offline-then-heal", "--variant", "none", "--live"])
        _ = try await command.errors.line(with: "2.0 s")
        command.signal(SIGINT)
        #expect(await command.end() == 130)
    }
}
