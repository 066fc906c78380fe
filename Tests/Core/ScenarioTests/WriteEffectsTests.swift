import Determinism
import Testing

// The testing library has a type of that name too.
import struct Scenario.Expectation

@testable import Scenario

/// Repeated writes on a server other than the built-in one, which is known by its responses only (I2).
@Suite struct WriteEffectsTests {
    /// A run of a program against a server of its own: its user creates n1 with the text `one`.
    private struct Run {
        var run = HandwrittenRun()
        private var second: Int64 = 1
        private var records: [String: UInt64] = [:]

        init(creations: Int = 1) {
            run.scenario.server = .run(.init(["server"]), ready: nil)
            run.scenario.devices = [
                .init(
                    name: "A", user: "ada", startsSynced: false, client: .run(.init(["client"]), adapter: .lines),
                    network: [])
            ]
            for number in 1...creations {
                run.scenario.steps.append(
                    .init(
                        trigger: .at(.zero),
                        action: (actor: "A", action: .create(row: "n\(number)", title: nil, text: "one")), mark: nil,
                        location: SourceLocation(file: "s.yaml")))
                run.add(0, .action(actor: "A", .create(row: "n\(number)")))
            }
        }

        /// Appends a write whose response is the last argument.
        mutating func write(
            _ method: String = "POST", key: String? = "k", body: UInt64 = 1, text: String? = "one", row: String? = "n1",
            target: UInt64 = 9, status: Int = 201, revision: Int? = nil, isLost: Bool = false, replayed: Bool? = nil,
            record: UInt64? = nil, answer: UInt64? = nil, hasResult: Bool = true
        ) {
            second += 1
            let id = run.exchange(
                second, method, row: row, key: key, body: body, responded: nil, received: nil)
            let contents = text.map { RequestContents.Body.note(title: nil, text: RequestContents.digest($0)) }
            run.add(second, .contents(id, RequestContents(body: contents ?? .other)))
            run.add(second, .arrived(id))
            if hasResult {
                run.add(
                    second,
                    .writeResult(
                        id, WriteResult(target: target, isReplayed: replayed, record: record, body: answer)))
            }
            run.add(second, .serverResponded(id, status: status, bytes: 20, revision: revision))
            if !isLost { run.add(second, .responseReceived(id, status: status)) }
        }

        /// `executed` or `undecided` with the number of such requests, or `kept`.
        var verdict: String {
            var evaluator = ExpectationEvaluator(run.scenario, run.history)
            let hasFailed = evaluator.violation(of: .noDuplicateEffect) != nil
            let isUnchecked = evaluator.facts.unchecked.contains { $0.invariant == .noDuplicateEffect }
            #expect(!(hasFailed && isUnchecked))
            return hasFailed ? "executed twice" : isUnchecked ? "not possible" : "kept"
        }
    }

    private static func verdict(_ body: (inout Run) -> Void) -> String {
        var run = Run()
        body(&run)
        return run.verdict
    }

    // MARK: Correct clients

    @Test func aRepetitionWithTheSameStatusAndBodyIsTheFirstResult() {
        let verdict = Self.verdict {
            $0.write(isLost: true, answer: 5)
            $0.write(answer: 5)
        }
        #expect(verdict == "kept")
    }

    @Test func aReplayHeaderDecidesWhateverTheRestOfTheResponseIs() {
        func verdict(_ replayed: Bool) -> String {
            Self.verdict {
                $0.write(isLost: true, answer: 5)
                $0.write(status: 200, replayed: replayed, answer: 6)
            }
        }
        #expect(verdict(true) == "kept")
        #expect(verdict(false) == "executed twice")
    }

    @Test func aResponseAboutTheSameRecordIsNoSecondCreation() {
        let verdict = Self.verdict {
            $0.write(key: nil, isLost: true, record: 7, answer: 5)
            $0.write(key: nil, body: 2, status: 200, record: 7, answer: 6)
        }
        #expect(verdict == "kept", "a date in the body and the number of records in the response differ")
    }

    @Test func aRepeatedPutOrDeleteHasTheEffectOfOne() {
        for method in ["PUT", "DELETE"] {
            let verdict = Self.verdict {
                $0.write(method, key: nil, text: nil, status: 200, isLost: true, answer: 5)
                $0.write(method, key: nil, text: nil, status: 200, answer: 6)
            }
            #expect(verdict == "kept", "\(method)")
        }
    }

    // MARK: Naive clients

    @Test(arguments: [nil, "new"] as [String?])
    func aSecondRecordIsASecondEffect(_ key: String?) {
        let verdict = Self.verdict {
            $0.write(key: key.map { $0 + "1" }, isLost: true, record: 7, answer: 5)
            $0.write(key: key.map { $0 + "2" }, body: 2, row: nil, record: 8, answer: 6)
        }
        #expect(verdict == "executed twice")
    }

    @Test(arguments: [nil, "new"] as [String?])
    func anotherResponseToTheSameCreationIsASecondEffect(_ key: String?) {
        let verdict = Self.verdict {
            $0.write(key: key.map { $0 + "1" }, isLost: true, answer: 5)
            $0.write(key: key.map { $0 + "2" }, body: 2, row: nil, answer: 6)
        }
        #expect(verdict == "executed twice")
    }

    @Test func aServerThatIgnoresTheKeyIsSeen() {
        let verdict = Self.verdict {
            $0.write(isLost: true, record: 7, answer: 5)
            $0.write(record: 8, answer: 6)
        }
        #expect(verdict == "executed twice")
    }

    @Test func twoCreationsWithOneTextAreTwoActions() {
        var run = Run(creations: 2)
        run.write(key: "a", record: 7, answer: 5)
        run.write(key: "b", body: 2, row: "n2", record: 8, answer: 6)
        #expect(run.verdict == "kept")
        run.write(key: "c", body: 3, row: nil, record: 9, answer: 7)
        #expect(run.verdict == "executed twice")
    }

    // MARK: Runs that do not tell

    @Test func responsesThatSayNothingLeaveItUndecided() {
        let cases: [(String, (inout Run) -> Void)] = [
            (
                "no body",
                {
                    $0.write(status: 204, isLost: true); $0.write(status: 204)
                }
            ),
            (
                "no key",
                {
                    $0.write(key: nil, isLost: true, answer: 5); $0.write(key: nil, answer: 5)
                }
            ),
            (
                "another status",
                {
                    $0.write(isLost: true, answer: 5); $0.write(status: 200, answer: 6)
                }
            ),
            (
                "not recorded",
                {
                    $0.write(isLost: true, hasResult: false); $0.write(hasResult: false)
                }
            ),
            (
                "one record only",
                {
                    $0.write(isLost: true, answer: 5); $0.write(record: 7)
                }
            ),
        ]
        for (name, body) in cases { #expect(Self.verdict(body) == "not possible", "\(name)") }
    }

    @Test func aResponseThatAnotherWriteHasGotTooNamesNoEffect() {
        let verdict = Self.verdict {
            $0.write(isLost: true, answer: 5)
            $0.write(answer: 5)
            $0.write("PUT", key: "other", body: 3, text: nil, status: 201, answer: 5)
        }
        #expect(verdict == "not possible")
    }

    @Test func aMissingRevisionSaysNothing() {
        func verdict(_ first: Int?, _ second: Int?) -> String {
            Self.verdict {
                $0.write("PATCH", text: nil, status: 200, revision: first, isLost: true)
                $0.write("PATCH", text: nil, status: 200, revision: second)
            }
        }
        #expect(verdict(nil, nil) == "not possible")
        #expect(verdict(2, nil) == "not possible")
        #expect(verdict(2, 2) == "kept")
        #expect(verdict(2, 3) == "executed twice")
    }

    @Test func aQueryWithTheSameBodyIsNoWrite() {
        let verdict = Self.verdict {
            $0.write(key: nil, text: nil, row: nil, status: 200, answer: 5)
            $0.write(key: nil, text: nil, row: nil, status: 200, answer: 6)
        }
        #expect(verdict == "not possible", "a login or a search may have another response each time")
    }

    // MARK: What is no repetition

    @Test func aKeyThatAnotherBodyReusesIsNoRepetition() {
        let verdict = Self.verdict {
            $0.write("PATCH", body: 1, text: nil, status: 200, answer: 5)
            $0.write("PATCH", body: 2, text: nil, status: 200, answer: 6)
        }
        #expect(verdict == "kept")
    }

    @Test func theSameBodyForAnotherPathIsNoRepetition() {
        let verdict = Self.verdict {
            $0.write(key: nil, text: nil, row: nil, target: 1, answer: 5)
            $0.write(key: nil, text: nil, row: nil, target: 2, answer: 6)
        }
        #expect(verdict == "kept")
    }

    @Test func aRequestThatTheServerHasNotExecutedCountsNothing() {
        let verdict = Self.verdict {
            $0.write(status: 503, answer: 4)
            $0.write(isLost: true, record: 7, answer: 5)
            $0.write(status: 409, answer: 6)
        }
        #expect(verdict == "kept")
    }

    // MARK: The verdict

    @Test func anUndecidedRunListsTheChecksAsNotPossibleWithTheReason() {
        var run = Run()
        run.write(status: 204, isLost: true)
        run.write(status: 204)
        let any = RequestPattern(method: nil, row: nil)
        func traffic(_ duplicates: Int, count: Int) -> Expectation {
            .init(
                .traffic(
                    .init(
                        request: any, from: "A", seen: .server, between: nil, count: .range(count...count),
                        responses: nil, same: [], duplicates: duplicates)),
                location: SourceLocation(file: "s.yaml"))
        }
        run.run.scenario.expectations = [traffic(0, count: 2), traffic(1, count: 2), traffic(0, count: 3)]
        let verdict = Verdict(run.run.scenario, run.run.history)
        let reason =
            "the responses do not tell whether the server has executed POST n1 of A at 3.0 s once more, after that at "
            + "2.0 s: they have no replay header, no identifier of a record and no revision that decide it, nor do "
            + "their statuses and bodies"
        #expect(
            verdict.impossible.map(\.description) == [
                "traffic: any from A, count 2, duplicates 0", "invariant: no-duplicate-effect (I2)",
            ])
        #expect(verdict.impossible.allSatisfy { $0.reason == reason }, "\(verdict.impossible)")
        #expect(verdict.unchecked.contains { $0.invariant == .noDuplicateEffect && $0.reason == reason })
        #expect(verdict.checks.map(\.outcome) == [.pass, .fail("2 requests: POST at 2.0 s, POST at 3.0 s")])
    }
}
