import ConfigFiles
import Determinism
import Foundation
import Scenario
import Synchronization
import TestSupport
import Testing
import Worlds

@testable import LiveWorld

/// Runs over the loopback interface.
@Suite(.tags(.runs), .serialized, .timeLimit(.minutes(1))) struct LiveRunTests {
    @Test func eventsAreReportedInOrder() async throws {
        let scenario = try WorldCase(
            "short", .pass,
            """
            steps: [{ at: 50ms, A: { edit: n1, text: two }, mark: edited }]
            expect: { eventually: [{ after: edited, within: 10s, A: { row: n1, icon: none, text: two } }] }
            """
        ).scenario()
        let reported = Mutex<[History.Entry]>([])
        let result = try await LiveRun.run(scenario) { entry in reported.withLock { $0.append(entry) } }
        #expect(result.verdict.result == .pass, "\(result.verdict.checks)")
        let texts = reported.withLock { $0.map { "\($0.time) \($0.event)" } }
        #expect(texts == result.history.entries.map { "\($0.time) \($0.event)" })
        #expect(try #require(result.history.time(of: "edited")) >= .milliseconds(50))
    }

    /// What the scenario's seed decides is the same in both worlds: identifiers of notes and operations.
    @Test func equalSeedsHaveEqualKeys() async throws {
        let scenario = try WorldCase(
            "keys", .pass,
            """
            steps: [{ at: 50ms, A: { create: n2, text: two } }]
            expect: { finally: { server: { count: 2 } } }
            """
        ).scenario()
        func keys(_ history: History) -> [String] {
            history.entries.compactMap {
                if case .request(_, actor: "A", method: "POST", _, let key, _, _) = $0.event { key } else { nil }
            }
        }
        let first = keys(try await LiveRun.run(scenario).history)
        #expect(first.count == 1)
        #expect(keys(try await LiveRun.run(scenario).history) == first)
        #expect(keys(try await LiveRun.run(scenario, seed: 99).history) != first)
    }

    @Test func aCancelledRunEndsAndLeavesNoFiles() async throws {
        let scenario = try WorldCase(
            "cancelled", .pass,
            """
            steps: [{ at: 60s, A: { edit: n1, text: two } }]
            expect: { finally: { server: { count: 1 } } }
            """
        ).scenario()
        let started = AsyncStream.makeStream(of: Void.self)
        let run = Task {
            try await LiveRun.run(scenario) { entry in
                if case .started = entry.event { started.continuation.finish() }
            }
        }
        for await _ in started.stream {}
        run.cancel()
        await #expect(throws: CancellationError.self) { try await run.value }
    }

    @Test func aRunThatCannotBeSetUpSaysWhy() async throws {
        var scenario = try WorldCase(
            "contract", .pass, "expect: { finally: { server: { count: 1 } } }"
        ).scenario()
        scenario.contract = "unknown"
        await #expect(throws: SetupError.self) { try await LiveRun.run(scenario) }
    }
}

/// The folder of a run.
@Suite struct RunFolderTests {
    private static func parent() throws -> URL {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("folders-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }

    private static func names(_ parent: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: parent.path).sorted()
    }

    @Test func theFolderOfARunThatHasEndedIsRemovedAndThatOfAnotherRunIsNot() throws {
        let parent = try Self.parent()
        defer { try? FileManager.default.removeItem(at: parent) }
        let running = try RunFolder(in: parent)
        // A killed run leaves its folder with a lock file that nobody holds.
        let killed = parent.appendingPathComponent("slowlane-run-killed")
        try FileManager.default.createDirectory(at: killed, withIntermediateDirectories: true)
        try Data().write(to: killed.appendingPathComponent("lock"))
        try Data("x".utf8).write(to: killed.appendingPathComponent("A.db"))
        // Other names, and files, are not touched.
        try Data().write(to: parent.appendingPathComponent("slowlane-run-file"))
        try FileManager.default.createDirectory(
            at: parent.appendingPathComponent("other"), withIntermediateDirectories: true)
        let next = try RunFolder(in: parent)
        let left = try Self.names(parent)
        #expect(
            Set(left) == [running.url.lastPathComponent, next.url.lastPathComponent, "slowlane-run-file", "other"])
        next.remove()
        running.remove()
        #expect(try Self.names(parent) == ["other", "slowlane-run-file"])
    }

    @Test func aFolderThatIsBeingCreatedIsNotRemoved() throws {
        let parent = try Self.parent()
        defer { try? FileManager.default.removeItem(at: parent) }
        let young = parent.appendingPathComponent("slowlane-run-young")
        let old = parent.appendingPathComponent("slowlane-run-old")
        for url in [young, old] {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -600)], ofItemAtPath: old.path)
        let next = try RunFolder(in: parent)
        defer { next.remove() }
        #expect(try Self.names(parent) == ["slowlane-run-young", next.url.lastPathComponent].sorted())
    }
}
