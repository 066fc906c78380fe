import Determinism
import Scenario
import TestSupport
import Testing

@testable import LiveWorld

/// The protocol with a program, without processes.
@Suite struct AdapterMachineTests {
    private static func time(_ milliseconds: Int64) -> Instant { Instant(.milliseconds(milliseconds)) }

    /// A machine whose program has printed its first line at 0 ms.
    private static func running(_ adapter: Scenario.Device.Adapter = .lines) -> AdapterMachine {
        var machine = AdapterMachine(adapter)
        machine.start(at: time(0))
        if adapter == .lines { machine.received(Array(#"{"ready":true}"#.utf8) + [10], at: time(0)) }
        #expect(machine.takeAction() == .started)
        return machine
    }

    private static func actions(_ machine: inout AdapterMachine) -> [AdapterMachine.Action] {
        var found: [AdapterMachine.Action] = []
        while let action = machine.takeAction() { found.append(action) }
        return found
    }

    private static func edit() throws -> AdapterAct {
        try AdapterAct(.edit(row: "n1", title: nil, text: "b")) { _ in "id-1" }
    }

    @Test func anActIsALineAndItsAnswerEndsIt() throws {
        var machine = Self.running()
        machine.perform(try Self.edit(), id: 7, at: Self.time(10))
        let line = #"{"id":7,"do":"edit","note":"n1","record":"id-1","text":"b"}"# + "\n"
        #expect(Self.actions(&machine) == [.write(Array(line.utf8))])
        machine.received(Array(#"{"id":7,"ok":true,"record":"x"}"#.utf8), at: Self.time(20))
        #expect(Self.actions(&machine).isEmpty)
        machine.received([13, 10], at: Self.time(30))
        #expect(Self.actions(&machine) == [.finished(act: 7, record: "x")])
    }

    @Test func aRefusalIsAFailureOfTheAct() throws {
        var machine = Self.running()
        machine.perform(try Self.edit(), id: 7, at: Self.time(10))
        _ = Self.actions(&machine)
        machine.received(Array("{\"id\":7,\"ok\":false,\"error\":\"no note\"}\n".utf8), at: Self.time(20))
        #expect(Self.actions(&machine) == [.failed(act: 7, "no note")])
    }

    @Test func aViewIsReportedWithAllItsRows() throws {
        var machine = Self.running()
        let line =
            #"{"view":{"outbox":1,"rows":[{"id":"a","title":"T","text":"x","icon":"upload","kept":["x","y"]},{"note":"n2"}]}}"#
        machine.received(Array((line + "\n").utf8), at: Self.time(5))
        let rows: [AdapterView.Row] = [
            .init(id: "a", note: nil, title: "T", text: "x", icon: .upload, isDeleted: false, kept: ["x", "y"]),
            .init(id: nil, note: "n2", title: nil, text: nil, icon: .plain, isDeleted: false, kept: []),
        ]
        #expect(Self.actions(&machine) == [.view(AdapterView(rows: rows, outbox: 1))])
    }

    /// Null is no dialog or message; a missing key is a value that the program does not publish.
    @Test func aViewMayHaveAScreen() throws {
        var machine = Self.running()
        let line =
            #"{"view":{"outbox":0,"screen":"n1","controls":["save","back"],"dialog":null,"rows":[{"id":"a","opacity":1.0,"strike":true},{"id":"b","opacity":0.4}]}}"#
        machine.received(Array((line + "\n").utf8), at: Self.time(5))
        let first = AdapterView.Row(
            id: "a", note: nil, title: nil, text: nil, icon: .plain, isDeleted: false, kept: [], opacity: "1",
            isStruck: true)
        let second = AdapterView.Row(
            id: "b", note: nil, title: nil, text: nil, icon: .plain, isDeleted: false, kept: [], opacity: "0.4")
        let screen = History.ScreenState(name: "n1", controls: ["back", "save"], dialog: "none")
        #expect(Self.actions(&machine) == [.view(AdapterView(rows: [first, second], outbox: 0, screen: screen))])
        #expect(screen.toast == nil)
        for wrong in [
            #""screen":null"#, #""screen":1"#, #""controls":"a""#, #""controls":[1]"#, #""toast":true"#,
            #""dialog":"""#,
        ] {
            #expect(throws: AdapterError.self) {
                _ = try AdapterLine(Array("{\"view\":{\"outbox\":0,\"rows\":[],\(wrong)}}".utf8))
            }
        }
        for wrong in [#""opacity":2"#, #""opacity":"1""#, #""strike":"yes""#] {
            #expect(throws: AdapterError.self) {
                _ = try AdapterLine(Array("{\"view\":{\"outbox\":0,\"rows\":[{\"id\":\"a\",\(wrong)}]}}".utf8))
            }
        }
    }

    @Test func actsOnScreensHaveTheirNote() throws {
        func line(_ action: Scenario.Action) throws -> String {
            String(decoding: try AdapterAct(action) { $0 == "n1" ? "a" : nil }.line(id: 1), as: UTF8.self)
        }
        #expect(try line(.open(row: nil)) == "{\"id\":1,\"do\":\"open\"}\n")
        #expect(try line(.open(row: "n1")) == "{\"id\":1,\"do\":\"open\",\"note\":\"n1\",\"record\":\"a\"}\n")
        let retry = Scenario.Action.call(name: "retry", arguments: [.init(name: "note", value: "n1")])
        #expect(
            try line(retry)
                == #"{"id":1,"do":"call","name":"retry","note":"n1","record":"a","args":{"note":"n1"}}"# + "\n")
    }

    @Test(arguments: [
        "x", "[]", "{}", "{\"id\":1}", "{\"id\":1,\"ok\":true}", "{\"id\":\"1\",\"ok\":true}", "{\"settled\":1}",
        "{\"ready\":false}", "{\"view\":{\"rows\":[]}}", "{\"view\":{\"rows\":{},\"outbox\":0}}",
        "{\"view\":{\"rows\":[{\"id\":\"\"}],\"outbox\":0}}", "{\"view\":{\"rows\":[{}],\"outbox\":0}}",
        "{\"view\":{\"rows\":[{\"id\":\"a\",\"icon\":\"star\"}],\"outbox\":0}}",
        "{\"view\":{\"rows\":[],\"outbox\":-1}}",
        "{\"settled\":true,\"ready\":true}", "{\"settled\":true", "{\"id\":99999999999999999999,\"ok\":true}",
    ]) func aLineThatIsNoneOfTheProtocolEndsTheTalk(_ line: String) {
        var machine = Self.running()
        machine.received(Array((line + "\n{\"settled\":true}\n").utf8), at: Self.time(5))
        let actions = Self.actions(&machine)
        guard case .broken(let reason)? = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(actions.count == 1)
        #expect(reason.hasPrefix("line 2 of its output"))
        #expect(machine.nextDeadline == nil)
    }

    @Test func bytesThatAreNotUTF8EndTheTalk() {
        var machine = Self.running()
        machine.received([0x22, 0xFF, 0x22, 10], at: Self.time(5))
        guard case .broken? = machine.takeAction() else {
            Issue.record("accepted")
            return
        }
    }

    @Test func aLineWithoutAnEndIsRefusedAtItsLimit() {
        var machine = Self.running()
        let piece = [UInt8](repeating: 0x20, count: 1 << 16)
        for _ in 0..<16 { machine.received(piece, at: Self.time(5)) }
        #expect(Self.actions(&machine).isEmpty)
        machine.received([0x20], at: Self.time(6))
        #expect(Self.actions(&machine) == [.broken("line 2 of its output is longer than 1048576 bytes")])
    }

    @Test func tooManyLinesAreRefused() {
        var limits = AdapterLimits()
        limits.linesMax = 3
        var machine = AdapterMachine(.lines, limits: limits)
        machine.start(at: Self.time(0))
        machine.received(Array("{\"settled\":true}\n\n{\"settled\":true}\n{\"settled\":true}\n".utf8), at: Self.time(1))
        #expect(Self.actions(&machine) == [.started, .settled(true)])
        machine.received(Array("{\"settled\":true}\n".utf8), at: Self.time(1))
        #expect(Self.actions(&machine) == [.broken("it has printed more than 3 lines")])
    }

    @Test func aProgramThatPrintsNothingIsGivenUp() {
        var machine = AdapterMachine(.lines)
        machine.start(at: Self.time(0))
        #expect(machine.nextDeadline == Self.time(10_000))
        machine.advance(to: Self.time(9_999))
        #expect(Self.actions(&machine).isEmpty)
        machine.advance(to: Self.time(10_000))
        let actions = Self.actions(&machine)
        guard case .broken(let reason)? = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(reason.contains("adapter: none"))
    }

    @Test func anActThatIsNotAnsweredIsGivenUp() throws {
        var machine = Self.running()
        machine.perform(try Self.edit(), id: 7, at: Self.time(100))
        _ = Self.actions(&machine)
        machine.advance(to: Self.time(10_099))
        #expect(Self.actions(&machine).isEmpty)
        machine.advance(to: Self.time(10_100))
        #expect(Self.actions(&machine) == [.broken("no answer to act 7 ('edit') within 10 s")])
    }

    @Test func anAnswerCountsOnce() throws {
        var machine = Self.running()
        machine.perform(try Self.edit(), id: 7, at: Self.time(100))
        machine.received(Array("{\"id\":7,\"ok\":true}\n{\"id\":7,\"ok\":true}\n".utf8), at: Self.time(101))
        let actions = Self.actions(&machine)
        #expect(actions.dropFirst().first == .finished(act: 7, record: nil))
        #expect(actions.last == .broken("line 3 of its output answers act 7, which awaits no answer"))
    }

    // MARK: Settling

    /// What a program says about itself is reported after the answer to the act that it performs.
    @Test func aProgramSaysThatItHasSettled() throws {
        var machine = Self.running()
        machine.perform(.sync, id: 3, at: Self.time(10))
        _ = Self.actions(&machine)
        machine.received(Array("{\"settled\":false}\n{\"settled\":true}\n".utf8), at: Self.time(20))
        #expect(Self.actions(&machine).isEmpty)
        machine.received(Array("{\"id\":3,\"ok\":true}\n".utf8), at: Self.time(30))
        #expect(Self.actions(&machine) == [.finished(act: 3, record: nil), .settled(true)])
    }

    @Test func aProgramThatSaysItHasNotSettledIsBelieved() {
        var machine = Self.running()
        machine.received(Array("{\"settled\":false}\n".utf8), at: Self.time(10))
        #expect(Self.actions(&machine) == [.settled(false)])
        #expect(machine.nextDeadline == nil)
    }

    @Test func silenceMeansThatAProgramHasSettled() {
        var machine = Self.running()
        machine.exchanges(1, at: Self.time(500))
        #expect(machine.nextDeadline == nil)
        machine.exchanges(0, at: Self.time(700))
        #expect(machine.nextDeadline == Self.time(1_700))
        machine.advance(to: Self.time(1_700))
        #expect(Self.actions(&machine) == [.settled(true)])
        machine.exchanges(1, at: Self.time(1_800))
        #expect(Self.actions(&machine) == [.settled(false)])
    }

    @Test func aProgramWithPendingChangesHasNotSettled() {
        var machine = Self.running()
        machine.received(Array("{\"view\":{\"rows\":[],\"outbox\":1}}\n".utf8), at: Self.time(10))
        _ = Self.actions(&machine)
        #expect(machine.nextDeadline == nil)
    }

    @Test func aProgramWithoutAnAdapterSettlesAlthoughItPolls() {
        var machine = Self.running(.none)
        var time: Int64 = 0
        var settled: Int64?
        while settled == nil && time < 20_000 {
            time += 500
            machine.exchanges(Int(time / 500 % 2), at: Self.time(time))
            machine.advance(to: Self.time(time))
            if Self.actions(&machine) == [.settled(true)] { settled = time }
        }
        #expect(settled == 10_000)
    }

    // MARK: The end

    @Test func theEndOfAProcessIsReportedOnce() {
        var machine = Self.running()
        machine.exited("exit status 1", isSuccess: false, at: Self.time(5_000))
        machine.exited("exit status 1", isSuccess: false, at: Self.time(5_000))
        #expect(Self.actions(&machine) == [.ended("exit status 1", hadStarted: true)])
    }

    @Test func aKilledProcessSaysNothingMore() throws {
        var machine = Self.running()
        machine.perform(try Self.edit(), id: 7, at: Self.time(100))
        _ = Self.actions(&machine)
        machine.stop()
        machine.received(Array("{\"id\":7,\"ok\":true}\nrubbish\n".utf8), at: Self.time(101))
        machine.exited("signal 9", isSuccess: false, at: Self.time(101))
        #expect(Self.actions(&machine).isEmpty)
        #expect(machine.nextDeadline == nil)
        machine.start(at: Self.time(200))
        machine.received(Array("{\"settled\":true}\n".utf8), at: Self.time(201))
        #expect(Self.actions(&machine) == [.started, .settled(true)])
    }

    @Test func aProgramWithoutAnAdapterMayEndWithSuccess() {
        var machine = Self.running(.none)
        machine.exited("exit status 0", isSuccess: true, at: Self.time(100))
        #expect(Self.actions(&machine) == [.settled(true)])
        machine.perform(.sync, id: 1, at: Self.time(200))
        #expect(Self.actions(&machine) == [.finished(act: 1, record: nil), .settled(true)])
    }

    /// Whatever a program prints, the machine has bounded state, and ends the talk at most once.
    @Test(arguments: randomSeeds(20)) func randomOutputDoesNoHarm(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var machine = AdapterMachine(.lines)
        machine.start(at: Self.time(0))
        let pieces = [
            "{\"id\":1,\"ok\":true}", "{\"settled\":true}", "{\"view\":{\"rows\":[],\"outbox\":0}}", "\n", "\n", "\r\n",
            "{",
            "\u{0}", "{\"id\":2,\"ok\":false}", "é",
        ]
        var broken = 0
        for step in 0..<500 {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0: machine.perform(.sync, id: Int.random(in: 0..<3, using: &generator), at: Self.time(Int64(step)))
            case 1: machine.exchanges(Int.random(in: 0..<3, using: &generator), at: Self.time(Int64(step)))
            case 2: machine.advance(to: Self.time(Int64(step)))
            case 3:
                machine.received((0..<4).map { _ in UInt8.random(in: 0...255, using: &generator) }, at: Self.time(0))
            default: machine.received(Array(pieces.randomElement(using: &generator)?.utf8 ?? "".utf8), at: Self.time(0))
            }
            for action in Self.actions(&machine) { if case .broken = action { broken += 1 } }
        }
        #expect(broken <= 1)
    }
}
