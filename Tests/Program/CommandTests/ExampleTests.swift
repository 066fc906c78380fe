import Foundation
import TestSupport
import Testing

/// The example clients in other languages, and scenarios with programs at the command line. The ten scenarios of
/// Examples/python take longer: Examples/python/run.
@Suite(.tags(.tools), .serialized, .timeLimit(.minutes(1))) struct ExampleTests {
    private static let folder = Repository.root.appending(path: "Examples").path()

    private static func has(_ program: String) -> Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
            .contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
    }

    private static func run(_ arguments: String...) async throws -> (status: Int32, output: String) {
        let command = try Command(["run"] + arguments)
        let status = await command.end()
        return (status, command.output.text + command.errors.text)
    }

    @Test func aClientInPythonKeepsWhatItHasCreated() async throws {
        let result = try await Self.run(Self.folder + "/python/scenarios/create-answer-lost.yaml", "--quiet")
        #expect(result.status == 0, "\(result.output)")
    }

    /// The same scenario with another client fails, and says why on one screen with a command that repeats it.
    @Test func aNaiveClientCreatesANoteTwice() async throws {
        let program = "A=python3 '\(Self.folder)/python/naive.py'"
        let result = try await Self.run(
            Self.folder + "/python/scenarios/create-answer-lost.yaml", "--quiet", "--device", program)
        #expect(result.status == 1)
        #expect(result.output.contains("the server has 2 notes"))
        #expect(result.output.contains("--device"))
        #expect(result.output.split(separator: "\n").count <= 26)
    }

    @Test(.enabled(if: has("node"))) func aClientInJavaScriptSendsItsQueue() async throws {
        let result = try await Self.run(Self.folder + "/node/scenarios/offline-create.yaml", "--quiet")
        #expect(result.status == 0, "\(result.output)")
    }

    @Test(.enabled(if: has("curl"))) func aScriptWithoutAnAdapterIsTested() async throws {
        let result = try await Self.run(Self.folder + "/shell/scenarios/report.yaml", "--quiet")
        #expect(result.status == 0, "\(result.output)")
    }

    /// Two fast runs of scripts/real-programs: git repeats a push whose response was lost, and curl continues a download with
    /// another version of the file. The script fails if the effects are not those of the pages.
    @Test(.enabled(if: has("git") && (has("nginx") || FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx"))))
    func realProgramsHaveTheEffectsOfTheirPages() async throws {
        let folder = try TemporaryFolder()
        let arguments = [
            Repository.root.appending(path: "scripts/real-programs").path(), "--once", "--slowlane",
            Command.binary.path(),
            "--report", folder.url.path(), "git:lost-response", "curl:changed",
        ]
        let result = try await blocking { try runProgram("python3", arguments) }
        #expect(result.status == 0, "\(result.output)\(result.errors)")
        #expect(result.output.contains("| lost-response | error, retried | pass |"), "\(result.output)")
        #expect(result.output.contains("| changed | mixed, error, retried | no promise |"), "\(result.output)")
        let results = try String(contentsOf: folder.url.appending(path: "curl/changed-1/result.json"), encoding: .utf8)
        #expect(results.contains("two versions mixed"))
    }

    @Test func everyExampleIsShort() throws {
        let server = try String(contentsOfFile: "\(Self.folder)/ShoppingList/server.py", encoding: .utf8)
        #expect(server.split(separator: "\n", omittingEmptySubsequences: false).count <= 46)
        for name in ["python/correct.py", "python/naive.py", "node/client.mjs", "shell/report.sh"] {
            let text = try String(contentsOfFile: "\(Self.folder)/\(name)", encoding: .utf8)
            #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 60, "\(name)")
        }
    }

    @Test(arguments: ["--simulated", "--both"]) func virtualTimeIsRefusedForPrograms(_ world: String) async throws {
        let result = try await Self.run(Self.folder + "/python/scenarios/outage.yaml", world)
        #expect(result.status == 65)
        #expect(!result.output.contains("verdicts differ"))
        #expect(
            result.output.contains(
                "outage cannot run in simulation: the client of A is a program; run it with --live"))
    }

    @Test func aDryRunSaysWhatIsNotExact() async throws {
        let result = try await Self.run(Self.folder + "/python/scenarios/outage.yaml", "--dry-run")
        #expect(result.status == 0)
        #expect(result.output.contains("A: attempts to connect are not seen; 'budget' counts requests only"))
    }

    @Test(arguments: ["A", "=x", "A=", "A='x"]) func aMalformedDeviceIsRefused(_ value: String) async throws {
        let result = try await Self.run("edit-conflict-after-subway", "--device", value)
        #expect(result.status == 64)
    }

    @Test func anUnknownDeviceIsRefused() async throws {
        let result = try await Self.run("edit-conflict-after-subway", "--device", "Z=sh")
        #expect(result.status == 64)
        #expect(result.output.contains("no scenario has a device 'Z'"))
    }
}
