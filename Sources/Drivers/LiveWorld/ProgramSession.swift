internal import Determinism
internal import Foundation
internal import Scenario
internal import Synchronization
internal import Worlds

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The process and the protocol of a program that is a device's client. It belongs to one thread.
struct ProgramSession: ~Copyable {
    private let name: String
    private let program: Scenario.Program
    private let variables: [(name: String, value: String)]
    private let errors: OutputTailBox
    private let client: ProgramClient
    private var machine: AdapterMachine
    private var process: ChildProgram?
    private let origin = ContinuousClock.now
    /// The start of a process that has not accepted acts yet.
    private var starting: (act: ScenarioDirector.ActID, order: LiveRunWorld.Order)?
    /// The act that the program performs.
    private var acting: (act: ScenarioDirector.ActID, action: Scenario.Action)?
    private var preparing: (deadline: Instant, continuation: CheckedContinuation<Bool, Never>)?
    /// Whether the sync of the setup has been answered.
    private var hasSynced = false
    private let ids: RandomIdentifiers

    /// The longest wait for files: a process whose children hold its pipes open is noticed then.
    private static let waitMax = Nanoseconds.milliseconds(100)
    /// The longest setup.
    private static let prepareMax = Nanoseconds.seconds(20)
    /// The number of the setup's sync; those of the director's acts follow.
    private static let prepareID = 0
    /// The maximum number of reads before orders are executed.
    private static let readsMax = 16

    init(
        _ name: String, _ program: Scenario.Program, _ adapter: Scenario.Device.Adapter,
        _ variables: [(name: String, value: String)], seed: UInt64, errors: OutputTailBox, _ client: ProgramClient
    ) {
        self.name = name
        self.program = program
        self.variables = variables
        self.errors = errors
        self.client = client
        machine = AdapterMachine(adapter)
        ids = RandomIdentifiers(seed: seed, "user/\(name)/ids")
    }

    private var now: Instant { Instant(Nanoseconds(ContinuousClock.now - origin)) }

    private var title: String { "the program of \(name) (\(program.arguments.joined(separator: " ").prefix(80)))" }

    // MARK: Orders

    mutating func execute(_ order: ProgramClientLoop.Order) {
        switch order {
        case .prepare(let continuation):
            preparing = (now + Self.prepareMax, continuation)
            start()
        case .start(let act, let given):
            starting = (act, given)
            start()
        case .kill(let act, let given):
            starting = nil
            acting = nil
            kill()
            client.killed(act, given)
        case .perform(let act, let given, let action):
            client.performing(given)
            do {
                let content = try client.act(of: action, newRecord: ids.uuid())
                acting = (act, action)
                machine.perform(content, id: act.number + 1, at: now)
            } catch {
                client.failed(act, "\(error)")
            }
        case .notify(let act): machine.notify(act)
        case .exchanges(let open): machine.exchanges(open, at: now)
        case .stop: break
        }
        executeActions()
    }

    private mutating func start() {
        do throws(ProgramError) {
            process = try ChildProgram(program, variables: variables)
            machine.start(at: now)
        } catch {
            fail(ProgramError(error.kind, "\(name): \(error)"))
        }
    }

    private mutating func kill() {
        machine.stop()
        process?.kill()
        process = nil
        if let data = variables.first(where: { $0.name == "SLOWLANE_DATA" }) {
            StrayProcesses.kill(variable: data.name, value: data.value)
        }
    }

    /// Kills the program; nothing follows.
    mutating func end() {
        kill()
        preparing?.continuation.resume(returning: false)
        preparing = nil
    }

    // MARK: Actions

    private mutating func executeActions() {
        while let action = machine.takeAction() {
            switch action {
            case .write(let bytes):
                if let process, !process.write(bytes) {
                    fail(ProgramError(.broken, "\(title) does not read its standard input"))
                }
            case .started:
                if preparing != nil {
                    machine.perform(.sync, id: Self.prepareID, at: now)
                } else if let start = starting.take() {
                    client.started(start.act, start.order)
                }
            case .finished(_, let record):
                hasSynced = true
                if let act = acting.take() { client.finished(act.act, act.action, record: record) }
            case .failed(_, let reason):
                if let act = acting.take() { client.failed(act.act, reason) }
                if preparing != nil { fail(ProgramError(.notStarted, "\(title) cannot sync before 0 s: \(reason)")) }
            case .view(let view): client.shows(view)
            case .settled(let isSettled):
                if preparing == nil {
                    client.settled(isSettled)
                } else if isSettled && hasSynced {
                    prepared()
                }
            case .broken(let reason): fail(ProgramError(.broken, "\(title): \(reason)"))
            case .ended(let how, let hadStarted):
                if hadStarted && preparing == nil {
                    client.ended("\(title) \(Scenario.Program.endedByItself): \(how)")
                    kill()
                } else {
                    fail(ProgramError(.notStarted, "\(title) ended at its start: \(how)"))
                }
            }
        }
    }

    private mutating func prepared() {
        kill()
        preparing?.continuation.resume(returning: true)
        preparing = nil
    }

    private mutating func fail(_ error: ProgramError) {
        let lines = errors.value.withLock(\.lines)
        let text = lines.isEmpty ? "" : "\n" + lines.map { "  standard error: \($0)" }.joined(separator: "\n")
        client.failed(ProgramError(error.kind, error.description + text))
        kill()
        preparing?.continuation.resume(returning: false)
        preparing = nil
    }

    // MARK: Waiting

    /// Waits for output, an order or a deadline, and processes output.
    mutating func wait(_ wakeup: WakeupPipe) {
        var files = [pollfd(fd: wakeup.exit, events: Int16(POLLIN), revents: 0)]
        if let process {
            for file in [process.output, process.errors] where file >= 0 {
                files.append(pollfd(fd: file, events: Int16(POLLIN), revents: 0))
            }
            if let input = process.fullInput { files.append(pollfd(fd: input, events: Int16(POLLOUT), revents: 0)) }
        }
        var timeout: CInt = -1
        if process != nil { timeout = CInt(Self.waitMax.count / 1_000_000) }
        for deadline in [machine.nextDeadline, preparing?.deadline].compactMap({ $0 }) {
            let left = max(0, (deadline - now).count / 1_000_000 + 1)
            if timeout < 0 || left < timeout { timeout = CInt(left) }
        }
        _ = poll(&files, nfds_t(files.count), timeout)
        wakeup.clear()
        readAll()
        machine.advance(to: now)
        executeActions()
        if let preparing, now >= preparing.deadline {
            fail(
                ProgramError(
                    .broken,
                    "\(title) has not settled within \(TimeFormat.short(Self.prepareMax)) before 0 s"))
        }
    }

    private mutating func readAll() {
        guard let process else { return }
        process.writeWaiting()
        let end = process.takeEnd()
        for _ in 0..<Self.readsMax {
            guard case .bytes(let bytes) = process.readErrors() else { break }
            errors.value.withLock { $0.add(bytes) }
        }
        for _ in 0..<Self.readsMax {
            guard case .bytes(let bytes) = process.readOutput() else { break }
            machine.received(bytes, at: now)
            executeActions()
            if self.process == nil { return }
        }
        guard let end else { return }
        process.kill()
        self.process = nil
        machine.exited(end.text, isSuccess: end.isSuccess, at: now)
    }
}

/// A reference to the output of a program, for its thread and for the report.
final class OutputTailBox: Sendable {
    let value = Mutex(OutputTail())
}
