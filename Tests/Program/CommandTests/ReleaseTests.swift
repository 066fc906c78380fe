#if os(Linux)
import Foundation
import TestSupport
import Testing

/// What `scripts/release` makes around a program.
@Suite(.tags(.tools)) struct ReleaseTests {
    /// The archives of a small program: their names, contents, modes, digests, and that equal files give equal archives.
    @Test func theArchivesOfAReleaseAreCompleteAndReproducible() throws {
        let script = Repository.root.appending(path: "Tests/Program/CommandTests/Python/check_release.py").path()
        let result = try runProgram(
            "python3", [script, Repository.root.path(), Command.binary.path()], standardError: .withOutput)
        #expect(result.status == 0 && result.output == "ok\n", "\(result.output)")
    }

    @Test func theScriptDescribesItselfAndRefusesUnknownOptions() throws {
        let script = Repository.root.appending(path: "scripts/release").path()
        let help = try runProgram(script, ["--help"])
        #expect(help.status == 0 && help.output.contains("SHA256SUMS") && help.output.contains("examples:"))
        #expect(try runProgram(script, ["--outptu", "x"]).status == 64)
    }
}
#endif
