internal import ArgumentParser
internal import CommandSupport
internal import ControlAPI
internal import Wire

/// `slowlane events`.
struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Print the events of a server's proxies: exchanges, connections, links, faults.",
        discussion: """
            Examples:
              slowlane events
              slowlane events --proxy notes
              slowlane events --json | jq 'select(.event == "exchange")'

            Each event is a line with the time, the proxy, the type and a text; with --json, an object with the fields 'id', \
            'event' and 'data', as docs/reference/events.md describes them. The first event is a snapshot. Summaries \
            of each proxy, up \
            to ten per second, are printed with --summaries, and always with --json.

            If the server stops, the command waits until the server responds again, and continues after the last event; \
            missed events are counted. The command ends at SIGINT, or when the reader of its output ends.

            While events are read, HTTP exchanges are tracked, and connections do not use the fast path.

            Exit status: 0 stopped; 1 the server has responded with an error; 69 cannot reach the server at the start, or \
            write the output.
            """)

    @Option(help: ArgumentHelp("Print only events of this proxy.", valueName: "name"))
    var proxy: String?

    @Flag(help: "Also print the summaries.")
    var summaries = false

    @OptionGroup(title: "Server") var server: ServerOptions

    func run() async throws {
        let console = Console()
        let reading = EventReading(
            client: try server.client(console), console: console, proxy: proxy, printsSummaries: summaries,
            printsJSON: server.json)
        let task = Task { try await reading.run() }
        let events = ForegroundEvents(endsWithOutput: true)
        Task {
            _ = await events.next()
            task.cancel()
        }
        do {
            try await task.value
        } catch let error as APIClient.CallError {
            console.flush()
            throw error.exitCode(failedTo: "read events", console)
        }
        console.flush()
    }
}

/// The reading of `slowlane events`, which connects again when the server has restarted.
private struct EventReading: Sendable {
    let client: APIClient
    let console: Console
    let proxy: String?
    let printsSummaries: Bool
    let printsJSON: Bool

    /// The time between two attempts to connect.
    private static let retryInterval = Duration.seconds(1)

    /// Reads until the task is cancelled.
    func run() async throws {
        var lastID: String?
        var isWaiting = false
        while !Task.isCancelled {
            do {
                try await client.readEvents(proxy: proxy, after: lastID) { event in
                    if isWaiting { console.print("connected again", to: .progress) }
                    isWaiting = false
                    lastID = event.id
                    print(event)
                }
            } catch let error as APIClient.CallError {
                if Task.isCancelled { return }
                guard case .noConnection = error, lastID != nil else { throw error }
            }
            if Task.isCancelled { return }
            if !isWaiting { console.print("the server has closed the stream; waiting for it", to: .progress) }
            isWaiting = true
            try? await Task.sleep(for: Self.retryInterval)
        }
    }

    private func print(_ event: EventStreamParser.Event) {
        if printsJSON {
            if let line = EventLine.json(event) { console.print(line) }
            return
        }
        guard let data = JSONText.parse(Array(event.data.utf8)) else { return }
        if event.type == EventLine.summaryType, !printsSummaries { return }
        for line in EventLine.lines(event.type, data) { console.print(line) }
    }
}
