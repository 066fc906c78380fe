import Foundation
import Synchronization
import TestSupport
import Testing

/// The built command, run as a child process.
final class Command: Sendable {
    /// The exit status and output of a run.
    struct Result {
        let status: Int32
        let output: String
        let errors: String
    }

    /// The binary that `SLOWLANE_PROGRAM` names, or the one beside the test bundle.
    static var binary: URL {
        if let path = TestSettings.program { return URL(filePath: path) }
        return built("slowlane")
    }

    /// The program of a product beside the test bundle.
    static func built(_ name: String) -> URL {
        var folder = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        while folder.path().count > 1 {
            let candidate = folder.appending(path: name)
            if FileManager.default.isExecutableFile(atPath: candidate.path()) { return candidate }
            folder.deleteLastPathComponent()
        }
        return URL(filePath: ".build/debug/\(name)")
    }

    /// Runs the command to its end and returns its result.
    static func run(_ arguments: String..., input: String = "") async throws -> Result {
        try await run(arguments, input: input)
    }

    static func run(_ arguments: [String], input: String = "") async throws -> Result {
        let command = try Command(arguments)
        command.type(input, andClose: true)
        let status = await command.end()
        return Result(status: status, output: command.output.text, errors: command.errors.text)
    }

    let output: Lines
    let errors = Lines()
    private let process: ChildProcess
    private let ended: AsyncStream<Int32>

    init(_ arguments: [String], binary: URL = Command.binary) throws {
        let process = try ChildProcess(binary.path(), arguments)
        self.process = process
        let (stream, source) = AsyncStream.makeStream(of: Int32.self)
        ended = stream
        output = Lines(beside: errors)
        Thread.detachNewThread {
            source.yield(process.wait())
            source.finish()
        }
        for (reading, lines) in [(process.output, output), (process.errors, errors)] {
            // Ends with the command, which holds the last open end of the pipe.
            Thread.detachNewThread {
                while case let data = reading.availableData, !data.isEmpty { lines.append(data) }
                lines.finish()
            }
        }
    }

    func type(_ text: String, andClose: Bool = false) {
        try? process.input.write(contentsOf: Data(text.utf8))
        if andClose { try? process.input.close() }
    }

    func signal(_ number: Int32) { process.signal(number) }

    /// The process identifier.
    var pid: Int32 { process.pid }

    /// Waits for the end and returns the exit status, negative for a signal.
    func end() async -> Int32 {
        var status: Int32 = 0
        for await value in ended { status = value }
        await output.wait { $0.isFinished }
        await errors.wait { $0.isFinished }
        return status
    }

    /// The lines of a stream as they arrive.
    final class Lines: Sendable {
        struct State {
            var data = Data()
            var isFinished = false

            var text: String { String(decoding: data, as: UTF8.self) }
        }

        private let state = Mutex(State())
        /// The stream of the errors, which messages about this stream show.
        private let errors: Lines?

        fileprivate init(beside errors: Lines? = nil) { self.errors = errors }

        var text: String { state.withLock { $0.text } }

        fileprivate func append(_ more: Data) { state.withLock { $0.data += more } }

        fileprivate func finish() { state.withLock { $0.isFinished = true } }

        /// Waits for a state, a minute at most.
        func wait(atMost duration: Duration = .seconds(60), _ isTrue: (State) -> Bool) async {
            let deadline = ContinuousClock.now + duration
            while !state.withLock({ isTrue($0) }) && ContinuousClock.now < deadline {
                try? await Task.sleep(for: .milliseconds(2))
            }
        }

        /// Waits up to a minute for a line that contains `part` and returns it. A program may write a line in pieces, so that
        /// the end of the line is awaited too; a prompt has none.
        func line(with part: String) async throws -> String {
            await wait { $0.text.contains(part) || $0.isFinished }
            await wait(atMost: .seconds(1)) { state in
                let line = state.text.firstRange(of: part).map { state.text[$0.upperBound...] }
                return state.isFinished || line?.contains("\n") == true
            }
            let line = text.split(separator: "\n").first { $0.contains(part) }
            return try #require(
                line.map(String.init), "no line with '\(part)' in: \(text); errors: \(errors?.text ?? "")")
        }
    }
}
