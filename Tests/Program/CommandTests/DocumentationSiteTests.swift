import Foundation
import TestSupport
import Testing

/// The documentation as a site (mkdocs.yml).
@Suite(.tags(.tools), .timeLimit(.minutes(1))) struct DocumentationSiteTests {
    @Test func theSiteHasEachPageAndNoBrokenLink() async throws {
        let folder = try TemporaryFolder()
        let result = try await runPython(
            "mkdocs", ["build", "--strict", "--site-dir", folder.path("site")], in: Repository.root.path())
        #expect(result.status == 0, "\(result.output)")
        let index = try String(contentsOfFile: folder.path("site/index.html"), encoding: .utf8)
        #expect(index.contains("href=\"start/lost-response/\""))
    }
}
