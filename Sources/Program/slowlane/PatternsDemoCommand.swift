internal import ArgumentParser
internal import CommandSupport
internal import Determinism
internal import Foundation
internal import ScenarioRunner

/// `slowlane demo patterns`.
struct PatternsDemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "patterns",
        abstract: "Show in the terminal how five offline patterns behave while the network is gone.",
        discussion: """
            Examples:
              slowlane demo patterns
              slowlane demo patterns --speed 4
              slowlane demo patterns --at 20
              slowlane demo patterns | less

            Five phones with an expense app lose their network at 8 s and get it back at 28 s. Each shows one of the patterns none, A, \
            B, C and D (docs/explanation/patterns.md). The run is in simulation; the screen shows it at the given speed.

            Without a terminal, the output has a line for each change. NO_COLOR turns off colours, grey \
            text and struck-through text; the marks in front of the lines have the same meaning.

            Exit status: 0 success; 64 wrong arguments; 130 ended by SIGINT.
            """)

    @Option(help: ArgumentHelp("Simulated seconds per second, 0.1 to 100.", valueName: "factor"))
    var speed = 2.0

    @Option(help: ArgumentHelp("Print the screen at one time, in seconds, and end.", valueName: "seconds"))
    var at: Double?

    func validate() throws {
        guard (0.1...100).contains(speed) else { throw ValidationError("--speed \(speed) must be 0.1 to 100") }
        if let at, !(0...3600).contains(at) { throw ValidationError("--at \(at) must be 0 to 3600 seconds") }
    }

    /// The time between two frames.
    private static let frameTime = Duration.milliseconds(100)

    func run() async throws {
        let console = Console()
        let demo = try PatternsDemo()
        let hasEscapes = Terminal.isStandardOutput && ProcessInfo.processInfo.environment["NO_COLOR"] == nil
        if let at {
            let time = min(Nanoseconds(Int64(at * 1e9)), demo.end)
            let width = Terminal.isStandardOutput ? Terminal.outputSize.columns : 80
            for line in demo.frame(at: time, width: width, withEscapes: hasEscapes) + ["", PatternsDemo.legend] {
                console.print(line)
            }
            return
        }
        let size = Terminal.outputSize
        let needed = PatternsDemo.frameSize
        // The legend and the cursor have three more lines.
        guard Terminal.isStandardOutput, size.columns >= needed.columns, size.rows >= needed.lines + 3 else {
            for line in demo.transcript() { console.print(line) }
            if Terminal.isStandardOutput {
                console.print(
                    "The animation needs a terminal of \(needed.columns) columns and \(needed.lines + 3) rows.")
            }
            return
        }
        try await play(demo, hasEscapes)
    }

    /// Draws frames over each other until the story has ended.
    private func play(_ demo: PatternsDemo, _ hasEscapes: Bool) async throws {
        let start = ContinuousClock.now
        var drawn = 0
        while true {
            let passed = ContinuousClock.now - start
            let time = min(Nanoseconds(Int64((passed / .seconds(1)) * speed * 1e9)), demo.end)
            let lines = demo.frame(at: time, width: Terminal.outputSize.columns, withEscapes: hasEscapes)
            // Up to the first line of the last frame, and each line cleared before it is written (ECMA-48, CUU and EL).
            var text = drawn > 0 ? "\u{1B}[\(drawn)A" : ""
            for line in lines + ["", PatternsDemo.legend] { text += "\r\u{1B}[2K\(line)\n" }
            StandardStream.output.write(text)
            drawn = lines.count + 2
            if time >= demo.end { return }
            try await Task.sleep(for: Self.frameTime)
        }
    }
}
