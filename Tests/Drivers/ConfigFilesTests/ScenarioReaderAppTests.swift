import ConfigFiles
import Scenario
import Testing

/// What scenario files say about the network-first reader.
@Suite struct ScenarioReaderAppTests {
    private static func text(_ device: String, steps: String = "[]") -> String {
        """
        scenario: 1
        name: test
        server: { records: { p1: { kind: profile, title: Bo, with: { birthday: "1990-05-01" } }, a1: { kind: article, in: p1 } } }
        devices: { N: { user: ada, client: reader\(device) } }
        network: { N: { 0s: wifi } }
        steps: \(steps)
        expect: { finally: { server: { count: 2 } } }
        """
    }

    private static func problems(_ text: String) -> String {
        do {
            _ = try ScenarioFile(parsing: text, file: "s.yaml")
            return ""
        } catch {
            return error.problems.map { "\($0)" }.joined(separator: "\n")
        }
    }

    @Test func settingsAndRecordsAreRead() throws {
        let scenario = try ScenarioFile(
            parsing: Self.text(", settings: { life: 2m, data-saver: \"on\" }"), file: "s.yaml"
        ).scenario
        #expect(scenario.devices[0].client == .app(.reader) && scenario.apps == [.reader])
        #expect(
            Set(scenario.devices[0].settings.map { "\($0.name)=\($0.value)" }) == ["life=120000ms", "data-saver=on"])
        #expect(scenario.records[0].fields.map(\.value) == ["1990-05-01"] && scenario.records[1].parent == "p1")
    }

    @Test func whatTheReaderDoesNotHaveIsAnError() {
        #expect(Self.problems(Self.text(", settings: { life: long }")).contains("the setting 'life'"))
        #expect(Self.problems(Self.text(", settings: { data-saver: maybe }")).contains("expected on or off"))
        #expect(Self.problems(Self.text("", steps: "[{ at: 1s, N: { call: balance } }]")).contains("no call 'balance'"))
        #expect(
            Self.problems(Self.text("", steps: "[{ at: 1s, N: { edit: a1, text: x } }]")).contains("no action 'edit'"))
    }
}
