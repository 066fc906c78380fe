import Determinism
import Scenario
import Testing

@testable import ConfigFiles

/// Scenarios that are refused before they run, because a step or fault can never take effect.
@Suite struct ScenarioRefusalTests {
    private static let head = """
        scenario: 1
        name: refused
        limit: 60s
        server: { notes: { n1: { title: Milk } } }
        writers: { W: { user: ada } }
        devices: { A: { user: ada }, B: { user: ada } }
        network: { A: { 0s: wifi }, B: { 0s: wifi } }
        expect: { finally: { server: { count: 1 } } }

        """

    private static func problems(_ text: String) -> [String] {
        do {
            _ = try ScenarioFile(parsing: head + text, file: "s.yaml")
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test(arguments: [
        (
            "steps: [{ at: 1s, A: { sync: now }, mark: m }, { at: 2s, A: { sync: now }, mark: m }]",
            ["s.yaml:9:82: mark 'm' is set twice"]
        ),
        (
            "steps: [{ at: 1s, A: { start: now } }]",
            ["s.yaml:9:9: 'A starts again' is impossible: A is running already"]
        ),
        (
            "steps: [{ at: 3s, A: { start: now } }, { at: 1s, A: { kill: now } }, { at: 4s, A: { start: now } }]",
            ["s.yaml:9:70: 'A starts again' is impossible: A is running already"]
        ),
        (
            "steps: [{ when: { B: { outbox: 0 } }, A: { start: now } }]",
            ["s.yaml:9:9: 'A starts again' is impossible: A is running already"]
        ),
        (
            "steps: [{ at: 1s, A: { kill: now } }, { at: 2s, A: { edit: n1, text: b } }, { at: 3s, A: { start: now } }]",
            ["s.yaml:9:39: 'A edits n1' is impossible: A has been killed"]
        ),
        (
            "steps: [{ at: 1s, A: { kill: now } }, { at: 2s, A: { kill: now } }]",
            ["s.yaml:9:39: 'A is killed' is impossible: A has been killed"]
        ),
        (
            "steps: [{ when: { A: { outbox: 1 } }, A: { kill: now }, mark: dead }, { after: dead, A: { sync: now } }]",
            ["s.yaml:9:71: 'A syncs' is impossible: A has been killed"]
        ),
        (
            "steps: [{ at: 60s, A: { sync: now } }]",
            ["s.yaml:9:9: the step is due at 60 s or later, but the limit is 60 s"]
        ),
        (
            "steps: [{ at: 50s, mark: m }, { after: m, delay: 11s, A: { sync: now } }]",
            ["s.yaml:9:31: the step is due at 61 s or later, but the limit is 60 s"]
        ),
        (
            "restore: 20s\nsteps: [{ at: 20s, A: { sync: now } }]",
            ["s.yaml:10:9: the step is due at 20 s or later, but 'restore' is at 20 s"]
        ),
        ("restore: 60s", ["s.yaml:9:10: expected a time before the limit, 60 s"]),
        (
            "steps: [{ after: m, A: { sync: now }, mark: m }]",
            ["s.yaml:9:9: the step waits for a mark that is set only after the step"]
        ),
        (
            "steps: [{ at: 1s, W: { edit: n1, text: b } }]\nfaults: [{ request: PUT n1, point: before-response, then: reset }]",
            ["s.yaml:10:10: no step of a device leads to a request 'PUT n1', so the fault never applies"]
        ),
        (
            "steps: [{ at: 1s, B: { edit: n1, text: b } }]\nfaults: [{ request: PUT any, to: A, point: before-response, then: reset }]",
            ["s.yaml:10:10: no step of A leads to a request 'PUT any', so the fault never applies"]
        ),
        (
            "steps: [{ at: 1s, A: { edit: n1, text: b } }]\nfaults: [{ request: DELETE n1, point: before-response, then: reset, times: { min: 0 } }]",
            ["s.yaml:10:10: no step of a device leads to a request 'DELETE n1', so the fault never applies"]
        ),
        (
            "variants: { v: { steps: [{ at: 61s, A: { sync: now } }] } }",
            ["s.yaml:9:26: the step is due at 61 s or later, but the limit is 60 s"]
        ),
    ]) func whatCanNeverTakeEffectIsRefused(text: String, expected: [String]) {
        #expect(Self.problems(text) == expected)
    }

    @Test(arguments: [
        "steps: [{ at: 1s, A: { kill: now } }, { at: 2s, A: { start: now } }, { at: 3s, A: { edit: n1, text: b } }]",
        // The times of these steps are not known.
        "steps: [{ when: { A: { outbox: 1 } }, A: { kill: now } }, { at: 2s, A: { sync: now } }]",
        "steps: [{ when: { A: { outbox: 1 } }, A: { kill: now } }, { at: 2s, A: { start: now } }]",
        "steps: [{ at: 9s, A: { kill: now } }, { when: { A: { outbox: 1 } }, A: { sync: now } }]",
        "steps: [{ at: 59s, A: { sync: now }, mark: m }, { after: m, A: { sync: now } }]",
        "steps: [{ at: 1s, A: { edit: n1, text: b } }]\nfaults: [{ request: PUT n1, nth: 3, point: before-response, then: reset }]",
        "faults: [{ request: GET n1, to: B, point: before-response, then: reset }, { request: any, point: before-response, then: stall }]",
        "restore: 20s\nsteps: [{ at: 19s, A: { sync: now } }]",
    ]) func whatMayTakeEffectIsAccepted(text: String) { #expect(Self.problems(text) == []) }

    @Test func presenceAndTheLeastBudgetAreRead() throws {
        func expectations(_ text: String) throws -> [String] {
            let head = Self.head.replacing("expect: { finally: { server: { count: 1 } } }\n", with: "")
            return try ScenarioFile(parsing: head + text, file: "s.yaml").scenario.expectations.map(\.description)
        }
        #expect(
            try expectations("expect: { traffic: [{ request: any, count: { min: 3, max: budget } }] }")
                == ["traffic: any, at least 3, within the retry budget"])
        #expect(
            try expectations("expect: { always: [{ A: { row: n1, present: true, since: 4s } }] }")
                == ["always: A n1 present true since 4.0 s"])
        #expect(
            try expectations("expect: { eventually: [{ by: 9s, A: { row: n1, present: false } }] }")
                == ["eventually: A n1 present false, by 9.0 s"])
        #expect(throws: FileError.self) {
            try expectations("expect: { always: [{ A: { row: n1, present: false, icon: none } }] }")
        }
        #expect(throws: FileError.self) { try expectations("expect: { always: [{ A: { present: true } }] }") }
    }
}
