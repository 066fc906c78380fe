import Foundation
import TestSupport
import Testing

/// The tests of the pytest plugin (`scripts/setup --tests` installs pytest), which use the built command.
@Suite(.tags(.servers)) struct PytestPluginTests {
    /// Four workers, each with a server of its own, run tests with networks of their own at the same time.
    @Test(.timeLimit(.minutes(2))) func thePluginPassesItsOwnTests() async throws {
        let root = Repository.root
        // The plugins of schemathesis take seconds to load in each of the processes.
        let ignored = ["cacheprovider", "schemathesis", "hypothesispytest", "anyio"].flatMap { ["-p", "no:\($0)"] }
        let (status, output) = try await runPython(
            "python",
            ["-m", "pytest", "-q", "-n", "4"] + ignored + [
                "--slowlane-program=\(Command.binary.path())", root.appending(path: "Integrations/pytest").path(),
            ])
        #expect(status == 0, "\(output)")
    }
}
