import ConfigFiles
import Testing

/// Errors of renamed words.
@Suite struct RenamedWordsTests {
    private static func problems(_ line: String) -> String {
        let text = """
            scenario: 1
            name: renamed
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            server: { notes: { n1: { title: a } } }
            steps: [{ at: 1s, A: { edit: n1, text: b } }]
            expect: { finally: { agree: [A, server] } }
            """
        do {
            _ = try ScenarioFile(parsing: text + "\n" + line, file: "s.yaml")
            return ""
        } catch {
            return "\(error)"
        }
    }

    /// The location is that of the word, and nothing is accepted as an alias.
    @Test(arguments: [
        (
            "faults: [{ request: PUT n1, point: committed, then: reset }]", "8:36: ",
            "'committed' is now called 'before-response'"
        ),
        ("faults: [{ request: PUT n1, point: any, then: cut }]", "8:47: ", "'cut' is now called 'reset'"),
        ("faults: [{ request: PUT n1, point: any, then: { hold: 5s } }]", "8:49: ", "'hold' is now called 'delay'"),
        (
            "faults: [{ request: PUT n1, point: any, then: { reply: { status: 503 } } }]", "8:49: ",
            "'reply' is now called 'respond'"
        ),
        (
            "faults: [{ request: PUT n1, chance: 5%, point: any, then: reset }]", "8:29: ",
            "'chance' is now called 'probability'"
        ),
        ("heal: 5s", "8:1: ", "'heal' is now called 'restore'"),
        (
            "workload: [{ to: 5s, every: 1s, by: [A], over: 1, mix: { edit: 1 } }]", "8:42: ",
            "'over' is now called 'notes'"
        ),
    ])
    func aRenamedWordIsAnErrorThatNamesTheNewOne(_ line: String, _ location: String, _ message: String) {
        let problems = Self.problems(line)
        #expect(problems.contains("s.yaml:\(location)") && problems.contains(message), "\(problems)")
    }

    @Test(arguments: [
        ("GET committed reset", "'committed' is now called 'before-response'"),
        ("GET before-response cut", "'cut' is now called 'reset'"),
        ("GET before-response answer 503", "'answer' is now called 'respond'"),
        ("GET chance 5% any reset", "'chance' is now called 'probability'"),
    ])
    func aRuleOnOneLineNamesTheNewWord(_ rule: String, _ message: String) {
        do {
            _ = try FaultExpression.parse(rule)
            Issue.record("accepted")
        } catch {
            #expect(error.message.contains(message), "\(error.message)")
        }
    }

    @Test(arguments: [("refuse", "offline"), ("updead", "uplink-loss"), ("downdead", "downlink-loss")])
    func aRenamedProfileNamesTheNewOne(_ old: String, _ new: String) {
        do {
            _ = try ProfileCatalogue.profile(old)
            Issue.record("accepted")
        } catch {
            #expect("\(error)".contains("'\(old)' is now called '\(new)'"), "\(error)")
        }
    }

    @Test func aRenamedInterfaceAndSettingNameTheNewOnes() {
        let network = "variants: { v: { network: { A: { 0s: { link: wifi, interface: cell } } } } }"
        #expect(Self.problems(network).contains("'cell' is now called 'cellular'"))
    }

    /// A new word may be an old one elsewhere: `delay` is also a key of steps.
    @Test func aWordWithoutANewOneAtItsPlaceIsUnknown() {
        #expect(RenamedWords.newWord(for: "hold", among: ["link", "flap"]) == nil)
        #expect(RenamedWords.newWord(for: "heal", among: ["end-outage"]) == "end-outage")
        #expect(RenamedWords.newWord(for: "heal", among: ["restore"]) == "restore")
    }
}
