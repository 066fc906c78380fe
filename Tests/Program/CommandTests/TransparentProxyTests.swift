#if os(Linux)
import Foundation
import TestSupport
import Testing

/// `slowlane proxy --forward --transparent`, in a network namespace with rules of nftables.
@Suite(.tags(.tools), .timeLimit(.minutes(5))) struct TransparentProxyTests {
    /// The words that start a program in a network namespace.
    private static let unshare = ["unshare"] + (geteuid() == 0 ? ["-n"] : ["-r", "-n"])

    /// Runs words with the folders of system programs in PATH.
    private static func run(_ words: [String]) throws -> (status: Int32, output: String) {
        let path = "PATH=\(ProcessInfo.processInfo.environment["PATH"] ?? ""):/usr/sbin:/sbin"
        let result = try runProgram("/usr/bin/env", [path] + words)
        return (result.status, result.output + result.errors)
    }

    /// Whether this system has namespaces and NAT.
    private static let isPossible: Bool = {
        let rule = "table inet t { chain c { type nat hook output priority -100; tcp dport 1 redirect to :2; }; }"
        return (try? run(unshare + ["nft", rule]).status) == 0
    }()

    @Test(
        .enabled(if: isPossible, "network namespaces or nft do not work here; scripts/setup --tests installs nft"))
    func redirectedConnectionsReachTheirDestinations() throws {
        let script = Repository.root.appending(path: "Tests/Program/CommandTests/Python/transparent.py").path()
        let result = try Self.run(Self.unshare + ["python3", script, Command.binary.path()])
        #expect(result.status == 0, "\(result.output)")
        #expect(result.output.split(separator: "\n").count { $0.hasSuffix(" ok") } == 12, "\(result.output)")
    }

    @Test(arguments: [
        (["--upstream", "8000", "--transparent"], "--transparent needs --forward"),
        (["--forward", "--transparent", "--user", "me"], "redirected connections cannot give a user"),
    ])
    func theOptionNeedsAForwardProxyWithoutAUser(_ options: [String], _ message: String) async throws {
        let result = try await Command.run(["proxy"] + options)
        #expect(result.status == 64 && result.errors.contains(message), "\(result.errors)")
    }
}
#endif
