internal import ArgumentParser
internal import Client
internal import CommandSupport
internal import Foundation
internal import LiveClient
internal import Synchronization
internal import Wire

extension NotesCommand {
    /// `slowlane notes watch`.
    struct Watch: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the notes, the queue and the connectivity while they change.",
            discussion: """
                A terminal shows a table that is redrawn; otherwise each change is a line. Without --server the \
                command follows what other processes do with the store. With --server it synchronises the store until it is \
                interrupted.

                Examples:
                  slowlane notes watch
                  slowlane notes watch --server 127.0.0.1:8000 --user ada:ada
                  slowlane notes watch --json > changes.jsonl
                """)

        @Option(
            help: ArgumentHelp(
                "Synchronise with this server, HOST:PORT, http://HOST:PORT or https://HOST[:PORT]. (default: none)",
                valueName: "address"))
        var server: String?

        @OptionGroup var connection: ServerOption

        @Flag(help: "Print one JSON object per change.") var json = false

        @OptionGroup var options: StoreOption

        /// The interval at which the store is checked for changes by other processes.
        private static let pollInterval = Duration.milliseconds(200)

        func run() async throws {
            let console = Console()
            let screen = NotesScreen(console, path: options.path, isJSON: json)
            Signals.on([Signals.windowChange]) { screen.redraw() }
            guard let server else {
                var notes = try options.read(console)
                let polling = Self.ending()
                screen.show(notes)
                screen.begin()
                defer { screen.end() }
                while !polling.isSet {
                    try await Task.sleep(for: Self.pollInterval)
                    let hasChanged = try NotesCommand.perform(console) { try notes.refresh() }
                    if hasChanged || screen.hasOtherState(notes) { screen.show(notes) }
                }
                return
            }
            let configuration = try connection.configuration(server: server, store: options.path, console)
            let events = ForegroundEvents(endsWithOutput: true)
            let client: SyncClient
            do {
                client = try await SyncClient.start(configuration, interface: connection.networkInterface) { event, _ in
                    screen.receive(event)
                }
            } catch {
                throw NotesCommand.exitCode(for: error, console)
            }
            screen.begin()
            // A difference that the client finds in the store when it starts is no event.
            if let mismatch = try await client.status().mismatch { screen.receive(.mismatch(mismatch)) }
            _ = await events.next()
            await client.stop()
            screen.end()
        }

        /// Returns a flag that the first SIGINT or SIGTERM sets, or the failure of standard output.
        private static func ending() -> EndFlag {
            let events = ForegroundEvents(endsWithOutput: true)
            let flag = EndFlag()
            Task {
                _ = await events.next()
                flag.set()
            }
            return flag
        }
    }
}

/// A boolean that one thread sets and others read.
private final class EndFlag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .relaxed) }

    func set() { value.store(true, ordering: .relaxed) }
}

/// The rows, the queue and the connectivity of a store: a table on a terminal, or lines.
private final class NotesScreen: Sendable {
    /// The queue and the connectivity.
    private struct Work: Equatable {
        var outbox = 0
        var connectivity = "unknown"
        var failures = 0
        var problem: SyncProblem?
        /// The reason why the store cannot be written.
        var storeError: String?

        var reason: String? { storeError ?? problem?.reason }
    }

    private struct State {
        var rows: [RecordID: NotesView.Row] = [:]
        var work: Work?
        var isDrawn = false
        /// The error because of which nothing is sent until the user acts.
        var error: String?
    }

    private let console: Console
    private let path: String
    private let isJSON: Bool
    private let isTerminal: Bool
    private let state = Mutex(State())

    init(_ console: Console, path: String, isJSON: Bool) {
        self.console = console
        self.path = path
        self.isJSON = isJSON
        isTerminal = !isJSON && Terminal.isStandardOutput
    }

    /// Switches the terminal to its second screen.
    func begin() {
        if isTerminal { print("\u{1B}[?1049h\u{1B}[?25l") }
        state.withLock { state in
            state.isDrawn = true
            draw(state)
        }
    }

    /// Draws the table again, because the size of the terminal has changed.
    func redraw() { state.withLock { draw($0) } }

    /// Switches the terminal back.
    func end() {
        let error = state.withLock { state in
            state.isDrawn = false
            return state.error
        }
        guard isTerminal else { return }
        print("\u{1B}[?25h\u{1B}[?1049l")
        // The second screen, which has shown the error, is gone.
        if let error { console.error(error) }
    }

    private func print(_ text: String) { StandardStream.output.write(text) }

    // MARK: Changes

    /// Shows a store that another process synchronises, or none.
    func show(_ notes: OfflineNotes) {
        let view = notes.view
        state.withLock { state in
            let rows = Dictionary(view.rows.map { (RecordID($0.uuid), $0) }) { first, _ in first }
            for row in view.rows {
                let id = RecordID(row.uuid)
                if let old = state.rows[id], NotesText.hasSameLook(old, row) { continue }
                state.rows[id] = row
                log(row)
            }
            for id in state.rows.keys.sorted() where rows[id] == nil {
                state.rows[id] = nil
                log(removed: id)
            }
            setWork(Self.work(of: notes, outbox: view.outbox), &state)
            draw(state)
        }
    }

    /// Returns whether the queue or the connectivity differ from what is shown.
    func hasOtherState(_ notes: OfflineNotes) -> Bool {
        state.withLock { $0.work != Self.work(of: notes, outbox: $0.work?.outbox ?? 0) }
    }

    private static func work(of notes: OfflineNotes, outbox: Int) -> Work {
        guard notes.syncProcess != nil, let sync = notes.syncState else {
            return Work(outbox: outbox, connectivity: "not-syncing")
        }
        return Work(
            outbox: outbox, connectivity: sync.connectivity, failures: sync.failures, problem: sync.currentProblem)
    }

    /// Shows an event of the client in this process.
    func receive(_ event: SyncEvent) {
        if !isTerminal, let alert = NotesText.alert(event) ?? NotesText.stoppedTransfer(event) {
            console.print(alert, to: .progress)
        }
        state.withLock { state in
            var work = state.work ?? Work()
            switch event {
            case .view(let change):
                for row in change.rows {
                    let row = NotesView.Row(row)
                    state.rows[RecordID(row.uuid)] = row
                    log(row)
                }
                for id in change.removed where state.rows.removeValue(forKey: id) != nil { log(removed: id) }
                work.outbox = change.outbox
                work.connectivity = NotesText.connectivityName(change.connectivity)
                work.failures = 0
                if case .unreachable(let failures) = change.connectivity { work.failures = failures }
            case .paused(let reason):
                report(NotesText.pause(reason), &state)
            case .mismatch(let mismatch):
                work.problem = SyncProblem(.accountMismatch, "\(mismatch)")
                report(NotesText.mismatch(mismatch, adoption: "run 'slowlane notes sync --adopt'"), &state)
            case .problem(let problem): work.problem = problem
            case .commitFailed(let reason): work.storeError = reason
            case .commitRecovered: work.storeError = nil
            default: return
            }
            setWork(work, &state)
            draw(state)
        }
    }

    /// Reports an error because of which nothing is sent until the user acts, once.
    private func report(_ error: String, _ state: inout State) {
        guard state.error != error else { return }
        state.error = error
        if !isTerminal { console.error(error) }
    }

    private func setWork(_ work: Work, _ state: inout State) {
        guard work != state.work else { return }
        state.work = work
        if isTerminal { return }
        let date = SyncClient.date()
        if isJSON {
            console.print(
                JSONText.object([
                    ("type", JSONText.string("sync")), ("version", "1"), ("time", JSONText.string(date)),
                    ("event", JSONText.string("sync")), ("pending", "\(work.outbox)"),
                    ("connectivity", JSONText.string(work.connectivity)), ("failures", "\(work.failures)"),
                    ("cause", JSONText.string(work.storeError == nil ? work.problem?.kind.rawValue : "store")),
                    ("reason", JSONText.string(work.reason)),
                ]))
        } else {
            console.print("\(date)  \(Self.line(work))")
        }
    }

    private static func line(_ work: Work) -> String {
        var line = "\(TextTable.count(work.outbox, "pending change")), \(work.connectivity)"
        if work.failures > 0 { line += ", \(TextTable.count(work.failures, "failure"))" }
        if let reason = work.reason { line += ": \(TextTable.singleLine(reason))" }
        return line
    }

    // MARK: Lines

    private func log(_ row: NotesView.Row) {
        if isTerminal { return }
        let date = SyncClient.date()
        if isJSON {
            console.print(
                JSONText.object(
                    [
                        ("type", JSONText.string("note")), ("version", "1"), ("time", JSONText.string(date)),
                        ("event", JSONText.string("note")),
                    ] + NotesText.json(row)))
        } else {
            console.print(
                "\(date)  \(NotesText.short(row.uuid))  \(NotesText.state(row))  \(TextTable.singleLine(row.title)) | "
                    + TextTable.singleLine(row.text))
        }
    }

    private func log(removed id: RecordID) {
        if isTerminal { return }
        let date = SyncClient.date()
        if isJSON {
            console.print(
                JSONText.object([
                    ("type", JSONText.string("removed")), ("version", "1"), ("time", JSONText.string(date)),
                    ("event", JSONText.string("removed")),
                    ("note", JSONText.string(id.text)),
                ]))
        } else {
            console.print("\(date)  \(NotesText.short(id.text))  removed")
        }
    }

    // MARK: The table

    private func draw(_ state: State) {
        guard isTerminal, state.isDrawn else { return }
        let size = Terminal.outputSize
        let view = NotesView(
            rows: Array(state.rows.values), outbox: state.work?.outbox ?? 0, connectivity: .unknown)
        var lines = ["\(path): \(NotesText.counts(view))"]
        if let work = state.work { lines.append(Self.line(work)) }
        lines.append("")
        let table = NotesText.table(view.rows, hasIcons: true)
        let space = max(2, size.rows - lines.count - 2)
        lines += table.prefix(space)
        if table.count > space { lines.append("... and \(TextTable.count(table.count - space, "further note"))") }
        let text = lines.map { "\($0.prefix(columns: size.columns))\u{1B}[K" }.joined(separator: "\r\n")
        print("\u{1B}[H\(text)\u{1B}[J")
    }
}
