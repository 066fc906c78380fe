import ConfigFiles
import Scenario
import Testing
import Wire

@testable import ScenarioRunner

/// A run with its history as JSON, and as a page.
@Suite struct RunDocumentTests {
    private static func document(_ text: String, showsText: Bool = false) throws -> (json: String, value: JSONValue) {
        let finished = try Fixture.finished(Fixture.run(text))
        let summary = RunSummary(finished, showsText: showsText, isTraced: false, isDocumented: true)
        let json = try #require(summary.document)
        return (json, try #require(JSONText.parse(json.utf8)))
    }

    @Test func theHistoryHasTheEventsOfTheRun() throws {
        let (_, value) = try Self.document(Fixture.passing)
        #expect(value["schema"].number == 1 && value["run"]["result"].text == "pass")
        #expect(value["devices"].array.map { $0["name"].text } == ["A"])
        let entries = value["entries"].array
        let times = entries.compactMap(\.["t"].number)
        #expect(times.count == entries.count && times == times.sorted())
        let kinds = entries.compactMap(\.["type"].text)
        for kind in ["network", "view", "request", "arrived", "responded", "received", "action", "mark", "server"] {
            #expect(kinds.contains(kind), "\(kind)")
        }
        #expect(!kinds.contains("other"))
        let put = try #require(entries.first { $0["method"].text == "PUT" })
        #expect(put["note"].text == "n1" && put["actor"].text == "A" && put["t"].number == 200)
        let responded = try #require(
            entries.first { $0["type"].text == "responded" && $0["exchange"].number == put["exchange"].number })
        #expect(responded["status"].number == 200 && responded["revision"].number == 2)
    }

    /// A view has what has changed since the last one: together they are the state.
    @Test func viewsHaveChangesOnly() throws {
        let (_, value) = try Self.document(Fixture.passing)
        let views = value["entries"].array.filter { $0["type"].text == "view" }
        let texts = views.flatMap { $0["changed"].array }.map { "\($0["text"].displayText) \($0["icon"].displayText)" }
        #expect(texts == ["two none", "three upload", "three none"])
    }

    @Test func textsThatAreNotInTheFileAreHidden() throws {
        let scenario = """
            scenario: 1
            name: filled
            server: { fill: { notes: 3, bytes: 40 } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            steps: [{ at: 1s, A: { sync: now } }]
            expect: { finally: { server: { count: 3 } } }

            """
        func texts(_ value: JSONValue) -> [String] {
            value["entries"].array.flatMap { $0["changed"].array }.compactMap { $0["text"].text }
        }
        let hidden = texts(try Self.document(scenario).value)
        #expect(hidden.count == 3 && hidden.allSatisfy { $0.contains("characters, digest ") }, "\(hidden)")
        let shown = texts(try Self.document(scenario, showsText: true).value)
        #expect(shown.count == 3 && shown.allSatisfy { !$0.contains("digest") })
    }

    /// Nothing in the data ends the element that it is in.
    @Test func dataCannotLeaveItsElement() throws {
        let text = Fixture.passing.replacing("text: three", with: "text: \"</script><img src=x>\"")
        let (json, _) = try Self.document(text)
        #expect(json.contains("</script><img"))
        let page = RunDocument.page(title: "a <b>", json: json)
        #expect(page.contains("<title>a &lt;b></title>"))
        #expect(!page.contains("<img") && page.ranges(of: "</script>").count == 2)
        #expect(page.contains("RunHistory") && page.contains("--blue"))
    }
}
