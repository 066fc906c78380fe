import ConfigFiles
import Determinism
import Foundation
import Scenario
import Synchronization
import TestSupport
import Testing
import Worlds

@testable import LiveWorld

/// Runs with programs as clients and servers.
@Suite(.tags(.runs), .serialized, .timeLimit(.minutes(1))) struct ProgramRunTests {
    /// Returns a scenario whose device A is a shell script.
    private static func scenario(
        _ script: String, adapter: String = "lines", starts: String = "empty", server: String = "",
        _ rest: String = "expect: { traffic: [{ request: any, from: A, count: 0 }] }"
    ) throws -> Scenario {
        let lines = script.split(separator: "\n").map { "            \($0)\n" }.joined()
        let text = """
            scenario: 1
            name: foreign
            limit: 20s
            \(server)
            devices:
              A:
                user: ada
                starts: \(starts)
                client:
                  adapter: \(adapter)
                  run:
                    - sh
                    - -c
                    - |
            \(lines)
            network: { A: { 0s: wifi } }
            \(rest)
            """
        return try ScenarioFile(parsing: text, file: "foreign.yaml").scenario
    }

    /// Answers every act, and says that nothing is left to do.
    private static let obedient = """
        echo '{"view":{"rows":[],"outbox":0}}'
        while read -r line; do
            id=$(echo "$line" | sed -n 's/^{"id":\\([0-9]*\\).*/\\1/p')
            if [ -n "$id" ]; then echo "{\\"id\\":$id,\\"ok\\":true}"; echo '{"settled":true}'; fi
        done
        """

    private static func error(_ scenario: Scenario) async -> ProgramError? {
        do {
            _ = try await LiveRun.run(scenario)
            return nil
        } catch {
            return error as? ProgramError
        }
    }

    // MARK: Repeated writes on a server of one's own

    /// Runs a client of `Examples/python/own-server`, the first response to which is lost, against its server.
    private static func repeatedCreation(_ client: String, _ contract: String) async throws -> Verdict {
        let path = "Examples/python/own-server/scenarios/create-answer-lost.yaml"
        let root = Repository.root.path
        let text = try String(contentsOfFile: "\(root)/\(path)", encoding: .utf8)
            .replacing("client.py, correct", with: "client.py, \(client)")
            .replacing("server.py, status-and-body", with: "server.py, \(contract)")
        let scenario = try ScenarioFile(parsing: text, file: "\(root)/\(path)").scenario
        return try await LiveRun.run(scenario).verdict
    }

    @Test(arguments: ["status-and-body", "record-id"])
    func aServerThatRepeatsItsResultHasExecutedAWriteOnce(_ contract: String) async throws {
        let correct = try await Self.repeatedCreation("correct", contract)
        #expect(correct.result == .pass, "\(WorldCase.reasons(correct))")
        #expect(correct.impossible.isEmpty && !correct.unchecked.contains { $0.invariant == .noDuplicateEffect })
        let naive = try await Self.repeatedCreation("naive", contract)
        #expect(naive.result == .fail)
        #expect(naive.checks.contains { $0.description == "invariant: no-duplicate-effect (I2)" })
    }

    @Test func aServerThatTellsNothingLeavesItUndecided() async throws {
        let verdict = try await Self.repeatedCreation("naive", "neither")
        #expect(!verdict.checks.contains { $0.outcome != .pass }, "\(WorldCase.reasons(verdict))")
        #expect(verdict.impossible.map(\.description).contains("invariant: no-duplicate-effect (I2)"))
    }

    // MARK: Programs that do what they must

    @Test func aProgramGetsItsActsAndItsView() async throws {
        let script = """
            echo '{"view":{"rows":[],"outbox":0}}'
            while read -r line; do
                id=$(echo "$line" | sed -n 's/^{"id":\\([0-9]*\\).*/\\1/p')
                record=$(echo "$line" | sed -n 's/.*"record":"\\([^"]*\\)".*/\\1/p')
                case $line in
                *create*) echo "{\\"view\\":{\\"rows\\":[{\\"id\\":\\"$record\\",\\"text\\":\\"two\\"}],\\"outbox\\":0}}" ;;
                esac
                echo "{\\"id\\":$id,\\"ok\\":true}"
                echo '{"settled":true}'
            done
            """
        let result = try await LiveRun.run(
            Self.scenario(
                script,
                """
                steps: [{ at: 50ms, A: { create: n1, text: two }, mark: created }]
                # The program sends nothing.
                invariants: { drop: [no-lost-write, convergence] }
                expect:
                  eventually: [{ after: created, within: 5s, A: { row: n1, text: two } }]
                  always: [{ A: { row: n1, present: true, since: created } }]
                """))
        #expect(result.verdict.result == .pass, "\(WorldCase.reasons(result.verdict))")
        #expect(result.verdict.impossible.isEmpty)
    }

    @Test func theEnvironmentTellsWhereTheServerIs() async throws {
        let script = """
            echo "$SLOWLANE_URL $SLOWLANE_USER $SLOWLANE_PASSWORD $SLOWLANE_SEED $SLOWLANE_DEVICE" >&2
            test -d "$SLOWLANE_DATA" || exit 1
            """ + "\n" + Self.obedient
        var scenario = try Self.scenario(script)
        scenario.seed = 77
        let lines = try await LiveRun.run(scenario).outputs.first?.lines ?? []
        let words = lines.first?.split(separator: " ").map(String.init) ?? []
        try #require(words.count == 5)
        #expect(words[0].wholeMatch(of: /http:\/\/127\.0\.0\.1:[0-9]+/) != nil)
        #expect(Array(words[1...]) == ["ada", "secret", "77", "A"])
    }

    @Test func theFolderOutlivesAKill() async throws {
        let script = """
            n=$(cat "$SLOWLANE_DATA/n" 2>/dev/null || echo 0)
            echo $((n + 1)) >"$SLOWLANE_DATA/n"
            echo "start $((n + 1))" >&2
            """ + "\n" + Self.obedient
        let result = try await LiveRun.run(
            Self.scenario(
                script, starts: "synced",
                """
                steps: [{ at: 50ms, A: { kill: now } }, { at: 100ms, A: { start: again } }]
                expect: { traffic: [{ request: any, from: A, count: 0 }] }
                """))
        #expect(result.verdict.result == .pass)
        // Once before 0 s, then twice.
        #expect(result.outputs.first?.lines == ["start 1", "start 2", "start 3"])
    }

    @Test func whatAProgramDoesNotShowIsNotPossibleAndNotPassed() async throws {
        let result = try await LiveRun.run(
            Self.scenario(
                "exec sleep 100", adapter: "none",
                """
                expect:
                  traffic: [{ request: any, from: A, count: 0 }]
                  finally: { A: { outbox: 0 }, agree: [A, server], server: { count: 0 } }
                """))
        #expect(result.verdict.result == .pass)
        #expect(result.verdict.checks.count == 2)
        #expect(result.verdict.impossible.count == 2)
        let nothing = try await LiveRun.run(
            Self.scenario("exec sleep 100", adapter: "none", "expect: { finally: { A: { outbox: 0 } } }"))
        #expect(nothing.verdict.result == .inconclusive)
    }

    // MARK: The end of the script

    /// A program that sends a change by `send` after it was made, and with the next sync if it has not.
    private static func sender(_ send: String) -> String {
        """
        fetch() {
            curl -s --noproxy '*' "$SLOWLANE_URL/things" >/dev/null
            touch "$SLOWLANE_DATA/sent"
            echo '{"view":{"rows":[],"outbox":0}}'
            echo '{"settled":true}'
        }
        echo '{"view":{"rows":[],"outbox":0}}'
        while read -r line; do
            id=$(echo "$line" | sed -n 's/^{"id":\\([0-9]*\\).*/\\1/p')
            case $line in
            *create*) echo '{"view":{"rows":[],"outbox":1}}'; echo '{"settled":false}' ;;
            esac
            if [ -n "$id" ]; then echo "{\\"id\\":$id,\\"ok\\":true}"; fi
            case $line in
            *create*) \(send) ;;
            *sync*) if [ -f "$SLOWLANE_DATA/sent" ]; then echo '{"settled":true}'; else fetch; fi ;;
            esac
        done
        """
    }

    @Test(arguments: [("(sleep 1; fetch) &", true), (":", false)])
    func onlyAProgramThatSendsItselfMeetsAnExpectationWithoutAnEnd(_ send: String, _ isCorrect: Bool) async throws {
        var scenario = try Self.scenario(
            Self.sender(send),
            """
            steps: [{ at: 50ms, A: { create: n1, text: two } }]
            invariants: { drop: [no-lost-write, convergence] }
            expect: { traffic: [{ request: GET any, from: A, seen: proxy, count: 1 }] }
            """)
        scenario.limit = .seconds(8)
        let result = try await LiveRun.run(scenario)
        #expect(result.verdict.result == (isCorrect ? .pass : .fail), "\(WorldCase.reasons(result.verdict))")
    }

    @Test func aProgramWithoutAnAdapterGetsTheTimeForTheRequestsThatAreExpected() async throws {
        let fetch = "curl -s --noproxy '*' \"$SLOWLANE_URL/things\" >/dev/null"
        let result = try await LiveRun.run(
            Self.scenario(
                "\(fetch)\nsleep 2.5\n\(fetch)", adapter: "none",
                "expect: { traffic: [{ request: GET any, from: A, seen: proxy, count: 2 }] }"))
        #expect(result.verdict.result == .pass, "\(WorldCase.reasons(result.verdict))")
    }

    // MARK: Programs that do not

    @Test func aProgramThatCannotBeStartedIsReported() async throws {
        var scenario = try Self.scenario("")
        scenario = scenario.replacingClients(["A": Scenario.Program(["/nonexistent/app"])])
        let error = await Self.error(scenario)
        #expect(error?.kind == .notStarted)
        #expect(error?.description == "A: cannot start '/nonexistent/app': No such file or directory")
    }

    @Test func aProgramThatEndsAtOnceIsReportedWithItsLastWords() async throws {
        let error = await Self.error(try Self.scenario("echo 'no configuration' >&2; exit 7"))
        #expect(error?.kind == .notStarted)
        #expect(error?.description.contains("exit status 7") ?? false)
        #expect(error?.description.contains("no configuration") ?? false)
    }

    @Test func aProgramThatEndsLaterFails() async throws {
        let script = "echo '{\"ready\":true}'; sleep 0.2; echo 'out of luck' >&2; exit 3"
        let result = try await LiveRun.run(
            Self.scenario(
                script,
                """
                steps: [{ at: 10s, A: { sync: now } }]
                expect: { traffic: [{ request: any, from: A, count: 0 }] }
                """))
        #expect(result.verdict.result == .fail)
        #expect(WorldCase.reasons(result.verdict).contains("ended by itself: exit status 3"))
        #expect(result.outputs.first?.lines == ["out of luck"])
    }

    @Test(arguments: [
        "head -c 3000000 /dev/zero; sleep 100", "echo hello; sleep 100", "printf '\\377\\n'; sleep 100",
        "echo '{\"id\":99,\"ok\":true}'; sleep 100", "yes '{\"settled\":true}'",
    ]) func hostileOutputEndsTheRun(_ script: String) async throws {
        let error = await Self.error(try Self.scenario(script))
        #expect(error?.kind == .broken, "\(String(describing: error))")
    }

    /// Children that leave the process group or hold the pipes open are killed with the program.
    @Test func childrenEndWithTheProgram() async throws {
        let marker = "7\(UInt32.random(in: 100_000...999_999))"
        let script = """
            sleep \(marker) &
            setsid sleep \(marker) &
            (setsid sh -c 'sleep \(marker) & sleep \(marker)' &)
            """ + "\n" + Self.obedient
        let result = try await LiveRun.run(
            Self.scenario(
                script,
                """
                steps: [{ at: 100ms, A: { kill: now } }, { at: 200ms, A: { start: again } }]
                expect: { traffic: [{ request: any, from: A, count: 0 }] }
                """))
        #expect(result.verdict.result == .pass)
        let left = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        for process in left.compactMap(Int.init) {
            let command = (try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)) ?? ""
            #expect(!command.contains(marker))
        }
    }

    @Test func aCancelledRunKillsItsProgram() async throws {
        let marker = "7\(UInt32.random(in: 100_000...999_999))"
        let scenario = try Self.scenario(
            "echo '{\"ready\":true}'; exec sleep \(marker)",
            "steps: [{ at: 15s, A: { sync: now } }]\nexpect: { traffic: [{ request: any, from: A, count: 0 }] }")
        let started = AsyncStream.makeStream(of: Void.self)
        let run = Task {
            try await LiveRun.run(scenario) { entry in
                if case .started = entry.event { started.continuation.finish() }
            }
        }
        for await _ in started.stream {}
        run.cancel()
        await #expect(throws: CancellationError.self) { try await run.value }
        let left = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        for process in left.compactMap(Int.init) {
            let command = (try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)) ?? ""
            #expect(!command.contains(marker))
        }
    }

    // MARK: Servers

    private static let python =
        "import http.server,os\n"
        + "class H(http.server.BaseHTTPRequestHandler):\n"
        + "  def do_GET(self):\n"
        + "    self.send_response(200); self.send_header('Content-Length','2'); self.end_headers(); self.wfile.write(b'ok')\n"
        + "http.server.ThreadingHTTPServer(('127.0.0.1',int(os.environ['PORT'])),H).serve_forever()"

    @Test func aProgramIsTheServer() async throws {
        var scenario = try Self.scenario(
            "curl -s --noproxy '*' \"$SLOWLANE_URL/things\" >/dev/null", adapter: "none",
            """
            expect:
              traffic: [{ request: GET any, from: A, responses: [200] }]
              finally: { server: { count: 3 } }
            """)
        scenario.server = .run(Scenario.Program(["python3", "-c", Self.python]), ready: "/health")
        let result = try await LiveRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(WorldCase.reasons(result.verdict))")
        #expect(
            result.verdict.impossible.map(\.reason) == [
                "the notes of a server other than the built-in one are not read"
            ])
    }

    @Test func aServerThatEndsBeforeItIsReadyIsReported() async throws {
        var scenario = try Self.scenario(Self.obedient)
        scenario.server = .run(Scenario.Program(["sh", "-c", "echo 'no database' >&2; exit 4"]), ready: "/health")
        let error = await Self.error(scenario)
        #expect(error?.kind == .notStarted)
        #expect(error?.description.contains("exit status 4") ?? false)
        #expect(error?.description.contains("no database") ?? false)
    }
}
