import ConfigFiles
import Determinism
import MutantGallery
public import Scenario
import ScenarioRunner
import TestSupport
public import Testing

@testable import Worlds

extension Scenario: CustomTestStringConvertible {
    /// The name: a dump of the whole scenario for each test case would fill the log.
    public var testDescription: String { fullName }
}

/// Runs of scenarios in virtual time.
@Suite struct SimulatedRunTests {
    /// All runs of the built-in scenarios.
    private static let builtIn: [Scenario] =
        (try? ScenarioCatalogue.names.flatMap { try ScenarioCatalogue.scenario($0).runs(ofVariant: nil) }) ?? []

    private static func reasons(_ verdict: Verdict) -> String {
        verdict.checks.filter { $0.outcome != .pass }.map { "\($0.description): \($0.outcome)" }.joined(separator: "\n")
    }

    private static func scenario(_ text: String, file: String = "test.yaml") throws -> Scenario {
        try ScenarioFile(parsing: "scenario: 1\nname: test\n" + text, file: file).scenario
    }

    /// The rejection is under way at the beginning of the restore phase: a client that pauses then waits for its user.
    @Test(arguments: [401, 403]) func aUserSignsInAgainAfterALateRejection(_ status: Int) throws {
        let scenario = try Self.scenario(
            """
            seed: 0
            restore: 17s
            devices: { A: { user: ada }, B: { user: ada } }
            policy: { first-delay: 500ms, longest-delay: 2s, poll: 20s }
            network: { A: { 0s: wifi }, B: { 0s: high-latency-dns, 2s: downlink-loss } }
            faults:
              - request: POST n1
                to: B
                point: before-request
                then: { respond: { status: \(status), headers: { Slowlane-Notes: "1", Content-Type: application/json }, body: "{}" } }
            steps: [{ at: 1s, B: { create: n1, text: a } }]
            expect:
              traffic: [{ request: POST n1, seen: proxy, between: [0s, finally], responses: [\(status), 201] }]
              finally: { agree: [A, B, server] }
            """)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(Self.reasons(result.verdict))")
    }

    // MARK: Verdicts

    @Test func thereAreBuiltInScenarios() { #expect(Self.builtIn.count > 3) }

    @Test(arguments: builtIn) func aBuiltInScenarioPasses(_ scenario: Scenario) throws {
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(scenario.fullName): \(Self.reasons(result.verdict))")
        #expect(result.history.entries.count > 20)
    }

    /// Those that take milliseconds.
    private static let short = builtIn.filter { !$0.tags.contains("soak") }

    /// Every other file; all of them with more seeds.
    private static let halfOfTheFiles = oneOfEachFile.enumerated().filter { TestSettings.isSoak || $0.offset % 2 == 0 }
        .map(\.element)

    @Test(arguments: halfOfTheFiles, randomSeeds(1, from: 1))
    func aBuiltInScenarioPassesWithOtherSeeds(_ scenario: Scenario, _ seed: UInt64) throws {
        let result = try SimulatedRun.run(scenario, seed: seed)
        #expect(result.verdict.result == .pass, "\(scenario.fullName) seed \(seed): \(Self.reasons(result.verdict))")
    }

    @Test(arguments: [
        ("edit-conflict-after-subway", "overwrites-on-conflict"),
        ("create-retried-after-lost-response", "posts-again-under-new-id"),
        ("create-retried-after-lost-response", "drops-on-lost-response"),
        ("commuter-30-minutes", "no-backoff"),
    ])
    func aMutantFailsItsScenario(_ name: String, _ mutant: String) throws {
        let scenario = try ScenarioCatalogue.scenario(name).scenario
        #expect(try SimulatedRun.run(scenario, behavior: [MutantGallery[mutant]].behavior).verdict.result == .fail)
    }

    /// Without packets an attempt takes as long as the timeout of the client; with a RST it takes no time.
    @Test(arguments: [("none", true), ("silent", false)])
    func aClientWithoutBackOffExceedsTheBudget(_ variant: String, _ isAborted: Bool) throws {
        let scenario = try #require(try ScenarioCatalogue.scenario("outage-30-min").runs(ofVariant: variant).first)
        let result = try SimulatedRun.run(scenario, behavior: [MutantGallery["no-backoff"]].behavior)
        let failed = result.verdict.checks.filter {
            if case .fail = $0.outcome { true } else { false }
        }.map(\.description)
        #expect(result.verdict.result == .fail)
        #expect(
            failed.contains {
                $0.hasPrefix("traffic: any from A at the proxy between 10.0 s and 1810.0 s, at least ")
                    && $0.hasSuffix(", within the retry budget")
            }, "\(failed)")
        #expect(failed.contains("the run ends") == isAborted)
    }

    /// The run of a client that repeats attempts at once is aborted, whatever its requests meet.
    @Test(arguments: ["offline", "dns", "portal", "100-loss"])
    func aClientWithoutBackOffDoesNotRunForever(_ outage: String) throws {
        let scenario = try Self.scenario(
            """
            limit: 1h
            server: { notes: { n1: { title: Milk, text: one } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi, 2s: { link: \(outage), signalled: false }, 1802s: wifi } }
            steps: [{ at: 5s, A: { edit: n1, text: two } }]
            expect: { finally: { agree: [A, server] } }
            """)
        let result = try SimulatedRun.run(scenario, behavior: [MutantGallery["no-backoff"]].behavior)
        #expect(result.eventCount < 60_000)
        guard outage != "100-loss" else { return }
        let reason = Self.reasons(result.verdict)
        #expect(result.verdict.result == .fail)
        #expect(reason.contains("the run ends: ") && reason.contains("repeated without a delay"), "\(reason)")
        #expect(try #require(result.history.entries.last?.time) < .seconds(60))
    }

    /// A user who requests a sync again and again causes one attempt each time; the delays do not become shorter.
    @Test func requestsOfTheUserDoNotShortenTheDelays() throws {
        let requests = (1...20).map { "{ at: \(60 + 7 * $0)s, A: { sync: now } }" }
        let scenario = try Self.scenario(
            """
            limit: 1h
            server: { notes: { n1: { title: Milk, text: one } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi, 2s: { link: offline, signalled: false }, 302s: wifi } }
            steps: [{ at: 5s, A: { edit: n1, text: two } }, \(requests.joined(separator: ", "))]
            expect:
              # 18 in 300 s of the reference policy, and one for each request
              traffic: [{ request: any, from: A, between: [2s, 302s], attempts: { min: 20, max: 38 } }]
              finally: { agree: [A, server] }
            """)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(Self.reasons(result.verdict))")
    }

    /// A client drops a request that has failed: a kernel that retransmitted it might create a deleted note again.
    @Test func aRequestThatHasFailedDoesNotArriveLater() throws {
        let scenario = try Self.scenario(
            """
            limit: 10m
            server: { contract: orig }
            devices: { A: { user: ada, starts: synced } }
            network: { A: { 0s: wifi, 4s: { link: 100-loss, signalled: false }, 36s: wifi } }
            steps:
              - { at: 5s, A: { create: n1, title: Milk, text: one } }
              - { at: 45s, A: { delete: n1 } }
              - { at: 120s, A: { sync: now } }
            expect:
              traffic:
                - { request: POST n1, from: A, seen: proxy, count: 2 }
                - { request: POST n1, from: A, count: 1 }
                - { request: DELETE n1, from: A, responses: [204] }
              finally: { server: { count: 0 }, agree: [A, server] }
            """)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(Self.reasons(result.verdict))")
    }

    /// The attempts of an outage of half an hour, with several seeds.
    @Test(arguments: randomSeeds(3, from: 1))
    func attemptsInALongOutageAreFew(_ seed: UInt64) throws {
        for scenario in try ScenarioCatalogue.scenario("outage-30-min").runs(ofVariant: nil) {
            let history = try SimulatedRun.run(scenario, seed: seed).history
            func attempts(from start: Int64) -> Int {
                history.entries.count { entry in
                    guard case .connectionAttempt = entry.event else { return false }
                    return entry.time >= .seconds(start) && entry.time < .seconds(1810)
                }
            }
            // The interface is down, and the client knows it.
            let isSilent = scenario.variant == "signalled"
            #expect(isSilent ? attempts(from: 10) == 0 : (30...68).contains(attempts(from: 10)))
            #expect(attempts(from: 1690) <= 5)
            let sent = history.entries.compactMap { entry -> String? in
                guard case .request(_, _, "PUT", let row, _, _, _) = entry.event else { return nil }
                return row
            }
            #expect(sent == (1...10).map { "n\($0)" }, "\(scenario.fullName) seed \(seed)")
        }
    }

    /// Delays are monotonic: jumps of the wall clock change no attempt.
    @Test(arguments: 1...3 as ClosedRange<UInt64>) func jumpsOfTheWallClockMoveNoAttempt(_ seed: UInt64) throws {
        var scenario = try #require(try ScenarioCatalogue.scenario("clock-jumps").runs(ofVariant: "none").first)
        func attempts() throws -> [Nanoseconds] {
            try SimulatedRun.run(scenario, seed: seed).history.entries.compactMap { entry in
                guard case .connectionAttempt(_, device: "A") = entry.event else { return nil }
                return entry.time <= .seconds(120) ? entry.time : nil
            }
        }
        let jumping = try attempts()
        let count = scenario.steps.count
        scenario.steps.removeAll { if case .clock? = $0.action?.action { true } else { false } }
        #expect(scenario.steps.count == count - 2)
        #expect(try attempts() == jumping && jumping.count >= 8)
    }

    @Test func anActionOnAMissingNoteFailsAtItsPlace() throws {
        let scenario = try Self.scenario(
            """
            server: { notes: { n1: { title: Milk, text: two } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            steps:
              - { at: 20ms, A: { delete: n1 } }
              - { at: 40ms, A: { edit: n1, text: three } }
            expect: { finally: { server: { count: 0 } } }
            """)
        let verdict = try SimulatedRun.run(scenario).verdict
        #expect(verdict.result == .fail)
        #expect(verdict.checks.contains { "\($0.outcome)".contains("test.yaml:8:5") }, "\(verdict.checks)")
    }

    @Test func aStateThatIsNeverReachedIsInconclusive() throws {
        let scenario = try Self.scenario(
            """
            server: { notes: { n1: { title: Milk, text: two } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            steps: [{ when: { A: { row: n1, icon: conflict } }, within: 40s, mark: shown }]
            expect: { finally: { server: { count: 1 } } }
            """)
        #expect(try SimulatedRun.run(scenario).verdict.result == .inconclusive)
    }

    /// With no client running, nothing is scheduled that could change a state.
    @Test func aRunInWhichNothingCanHappenEndsAtOnce() throws {
        let scenario = try Self.scenario(
            """
            limit: 1h
            server: { notes: { n1: { title: Milk, text: two } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            steps:
              - { at: 1s, A: { kill: now } }
              - { when: { A: { row: n1, icon: conflict } }, within: 50m, mark: shown }
            expect: { finally: { server: { count: 1 }, agree: [A, server] } }
            """)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .inconclusive, "\(Self.reasons(result.verdict))")
        #expect(try #require(result.history.entries.last?.time) < .seconds(180))
    }

    /// Clients poll each minute; what no poll can bring about is not waited for.
    @Test func aRunInWhichOnlyPollsHappenEnds() throws {
        let scenario = try Self.scenario(
            """
            limit: 2h
            server: { notes: { n1: { title: Milk, text: two } } }
            devices: { A: { user: ada }, B: { user: ada } }
            writers: { W: { user: ada } }
            network: { A: { 0s: wifi }, B: { 0s: 3g } }
            steps:
              - { at: 1s, A: { edit: n1, text: three } }
              - { at: 20s, W: { edit: n1, text: four } }
              - { when: { B: { row: n1, text: four } }, within: 50m, mark: fetched }
              - { when: { A: { row: n1, icon: conflict } }, within: 50m, mark: shown }
            expect:
              eventually: [{ by: 1h, A: { row: n1, text: five } }]
              finally: { agree: [A, B, server] }
            """)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .fail, "the state of the expectation is never reached")
        // A poll shows what the writer has done, at the latest a minute later.
        #expect(result.history.time(of: "fetched") != nil)
        #expect(result.history.time(of: "shown") == nil)
        #expect(try #require(result.history.entries.last?.time) < .seconds(200))
    }

    @Test func theStateAtTheStartIsRecordedIfItNeverChanges() throws {
        let scenario = try Self.scenario(
            """
            server: { notes: { n1: { title: Milk, text: two } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            expect: { finally: { A: { row: n1, text: two }, agree: [A, server] } }
            """)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(Self.reasons(result.verdict))")
    }

    /// The client gives up a request in an outage that lasts; the connection on the link remains.
    @Test(arguments: [
        "uplink-loss", "downlink-loss", "100-loss", "{ link: 100-loss, signalled: false }", "offline", "portal",
    ])
    func aScriptThatEndsInAnOutageEndsWhenTheClientHasGivenUp(_ outage: String) throws {
        let scenario = try Self.scenario(
            """
            server: { notes: { n1: { title: Milk, text: two } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi, 1s: \(outage) } }
            steps: [{ at: 2s, A: { edit: n1, text: three } }]
            expect: { finally: { server: { n1: { revision: 2, text: three } }, agree: [A, server] } }
            """)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(Self.reasons(result.verdict))")
        #expect(try #require(result.history.entries.last?.time) < .seconds(60))
    }

    @Test func aWriterReadsANoteBeforeItChangesIt() throws {
        let scenario = try Self.scenario(
            """
            server: { notes: { n1: { title: Milk, text: one } } }
            devices: { A: { user: ada } }
            writers: { W: { user: ada } }
            network: { A: { 0s: wifi } }
            steps:
              - { at: 1s, A: { edit: n1, text: two } }
              - { at: 5s, W: { edit: n1, text: three } }
              - { at: 6s, W: { create: n2, text: four } }
              - { at: 7s, W: { delete: n2 } }
            expect:
              traffic: [{ request: PUT n1, from: W, responses: [200] }]
              finally: { server: { count: 1, n1: { revision: 3, title: Milk, text: three } }, agree: [A, server] }
            """)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(Self.reasons(result.verdict))")
    }

    // MARK: Determinism

    /// One run of each file.
    private static let oneOfEachFile: [Scenario] = {
        var names: Set<String> = []
        return short.filter { names.insert($0.name).inserted }
    }()

    /// Every eighth file; all of them with more seeds.
    private static let someFiles = oneOfEachFile.enumerated().filter { TestSettings.isSoak || $0.offset % 8 == 1 }
        .map(\.element)

    @Test(arguments: someFiles) func equalRunsHaveEqualDigests(_ scenario: Scenario) throws {
        let digests = try (0..<2).map { _ in try SimulatedRun.run(scenario).digest }
        #expect(Set(digests).count == 1)
        // Identifiers and delays come from the seed. A run in which no user acts may have neither.
        let hasActs =
            !scenario.workload.isEmpty
            || scenario.steps.contains { step in
                switch step.action?.action {
                case .clock?, .open?, nil: false
                default: true
                }
            }
        #expect(try !hasActs || SimulatedRun.run(scenario, seed: scenario.seed &+ 1).digest != digests[0])
    }

    /// Each device draws from streams of its own.
    @Test func theActsOfADeviceDoNotChangeWhatAnotherDraws() throws {
        func requests(_ steps: String) throws -> [String] {
            let scenario = try Self.scenario(
                """
                devices: { A: { user: ada }, B: { user: bo } }
                network: { A: { 0s: very-bad-network }, B: { 0s: very-bad-network } }
                steps:
                  - { at: 1s, A: { create: n1, text: one } }
                  - { at: 3s, A: { edit: n1, text: two } }
                  - { at: 20s, A: { edit: n1, text: three } }
                \(steps)
                expect: { finally: { agree: [A, server] } }
                """)
            return try SimulatedRun.run(scenario).history.entries.compactMap { entry in
                guard case .request(_, actor: "A", let method, let row, _, _, _) = entry.event,
                    entry.time < .seconds(25)
                else { return nil }
                return "\(entry.time) \(method) \(row ?? "")"
            }
        }
        let alone = try requests("")
        #expect(alone.count >= 3)
        #expect(try requests("  - { at: 2s, B: { create: n2, text: four } }") == alone)
    }

    @Test(arguments: randomSeeds(2)) func theSoakPasses(_ seed: UInt64) throws {
        let swarm = Swarm(try ScenarioCatalogue.scenario("two-device-soak").scenario, links: .builtIn)
        let scenario = swarm.scenario(seed: seed)
        #expect(scenario.steps.count >= Swarm.actions)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result != .fail, "seed \(seed): \(Self.reasons(result.verdict))")
        if seed == 0 { #expect(try SimulatedRun.run(scenario).digest == result.digest) }
    }

    // MARK: Outages

    private static let outages = [
        "100-loss", "{ link: 100-loss, signalled: false }", "offline",
        "{ link: offline, signalled: false }", "dns", "portal", "uplink-loss", "downlink-loss",
    ]

    @Test(arguments: outages) func anOutageOfHalfAnHourTakesFewEvents(_ outage: String) throws {
        let scenario = try Self.scenario(
            """
            limit: 1h
            server: { notes: { n1: { title: Milk, text: one } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi, 2s: \(outage), 1802s: wifi } }
            steps:
              - { at: 5s, A: { edit: n1, text: two }, mark: edited }
            expect:
              traffic: [{ request: any, from: A, seen: proxy, between: [2s, 1802s], count: { max: budget } }]
              eventually: [{ by: 1900s, A: { outbox: 0, row: n1, icon: none } }]
              finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
            """)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(outage): \(Self.reasons(result.verdict))")
        #expect(result.eventCount < 10_000)
        #expect(try #require(result.history.entries.last?.time) > .seconds(1800))
    }

    // MARK: Kills

    private static let killed = """
        server: { notes: { n1: { title: Milk, text: one }, n2: { text: old } } }
        devices: { A: { user: ada } }
        writers: { W: { user: ada } }
        network: { A: { 0s: wifi, 3s: 100-loss, 6s: 3g } }
        faults: [{ request: POST n3, nth: 1, point: before-response, then: reset }]
        steps:
          - { at: 1s, A: { edit: n1, text: two } }
          - { at: 2s, W: { create: n4, text: web } }
          - { at: 3500ms, A: { create: n3, text: new } }
          - { at: 4s, A: { delete: n2 } }
          - { at: 5s, A: { edit: n1, text: three } }
          - { at: 20s, A: { sync: now } }
        expect:
          finally:
            server: { count: 3, n1: { text: three }, n3: { text: new }, n4: { text: web } }
            A: { outbox: 0 }
            agree: [A, server]
        """

    @Test func aKillBeforeAnyActionLosesAndRepeatsNothing() throws {
        let scenario = try Self.scenario(Self.killed)
        let whole = try SimulatedRun.run(scenario)
        #expect(whole.verdict.result == .pass, "\(Self.reasons(whole.verdict))")
        let actions = try #require(whole.actionCounts["A"])
        #expect(actions > 40)
        // Each third action, or with more seeds all.
        for action in stride(from: 0, to: actions, by: TestSettings.isSoak ? 1 : 3) {
            let result = try SimulatedRun.run(scenario, kill: .init(device: "A", beforeAction: action))
            #expect(
                result.verdict.result == .pass, "kill before action \(action): \(Self.reasons(result.verdict))")
            let wasKilled = result.history.entries.contains {
                if case .stopped(device: "A") = $0.event { true } else { false }
            }
            #expect(wasKilled, "action \(action)")
        }
    }

    @Test func aKilledClientKeepsWhatItHasCommitted() throws {
        let scenario = try Self.scenario(
            """
            server: { notes: { n1: { title: Milk, text: two } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi, 100ms: 100-loss, 10s: wifi } }
            steps:
              - { at: 200ms, A: { edit: n1, text: three } }
              - { at: 4s, A: { kill: now } }
              - { at: 7s, A: { start: again } }
            expect:
              always: [{ A: { row: n1, text: three, since: 1s } }]
              finally: { server: { n1: { revision: 2, text: three } }, agree: [A, server] }
            """)
        let result = try SimulatedRun.run(scenario)
        #expect(result.verdict.result == .pass, "\(Self.reasons(result.verdict))")
    }
}
