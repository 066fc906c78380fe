import Foundation
import TestSupport
import Testing

/// The tests of the npm package (`scripts/setup --tests` installs Node), which use the built command.
@Suite(.tags(.servers)) struct NpmPackageTests {
    @Test(.timeLimit(.minutes(2))) func thePackagePassesItsOwnTests() async throws {
        let folder = Repository.root.appending(path: "Integrations/npm").path()
        let tests = ["network", "report", "intercept"].map { "test/\($0).test.js" }
        let result = try await blocking {
            try runProgram(
                "/usr/bin/env", ["SLOWLANE_PROGRAM=\(Command.binary.path())", "node", "--test"] + tests, in: folder,
                standardError: .withOutput)
        }
        #expect(result.status == 0, "\(result.output)")
        // A run that finds no tests succeeds too.
        #expect(result.output.contains("pass 16"), "\(result.output)")
    }
}
