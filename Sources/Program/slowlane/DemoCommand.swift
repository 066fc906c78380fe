internal import ArgumentParser
internal import CommandSupport
internal import ControlAPI
internal import Foundation
internal import NIOPosix
internal import ScenarioRunner

/// `slowlane demo`.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Show in a browser how two devices stay in agreement on a bad network.",
        discussion: """
            Examples:
              slowlane demo
              slowlane demo --port 0
              slowlane demo --record offline.html
              slowlane demo --record story.svg
              slowlane demo patterns

            The page plays sixty seconds of a phone, a tablet and a server: a tunnel, edits on both devices, the conflict, its \
            resolution, and a lost response. It runs in simulation, so that it can be paused, repeated and played faster; \
            the button 'live on this computer' starts a notes server, two proxies and two sync clients on this machine and \
            shows them while they run; then you can type on both devices. The button 'a client with defects' plays the \
            same scenes with a client that has eight known defects ('client: legacy').

            --record writes the page with both runs to an HTML file, which needs no server and no network. If the name of \
            the file ends in '.svg', it is a moving picture of the first run, without scripts, for a page or a README.

            SIGINT and SIGTERM stop the server.

            Exit status: 0 stopped, or the file is written; 64 wrong arguments; 69 cannot bind the port or write the file.
            """, subcommands: [PatternsDemoCommand.self])

    @Option(help: ArgumentHelp("Port on the loopback interface; 0 picks a free port.", valueName: "port"))
    var port = 8475

    @Option(
        help: ArgumentHelp(
            "Write the page (.html) or a moving picture (.svg) to a file; start no server.", valueName: "file"))
    var record: String?

    func validate() throws {
        guard (0...65535).contains(port) else { throw ValidationError("--port \(port) must be 0 to 65535") }
        if let record, !Self.isPicture(record), !record.lowercased().hasSuffix(".html") {
            throw ValidationError("--record '\(record)': the name must end in .html or .svg")
        }
    }

    func run() async throws {
        let console = Console(wantsStatusLine: false, hasPrompt: false)
        let demo = Demo()
        if let record {
            do {
                let text = Self.isPicture(record) ? try demo.picture() : try demo.recordedPage()
                try Data(text.utf8).write(to: URL(filePath: record), options: .atomic)
            } catch {
                console.error("cannot write \(record): \(FileFailure.reason(error, writing: record))")
                throw ExitStatus.unavailable
            }
            return console.print("\(record): open it in a browser")
        }
        let events = ForegroundEvents()
        let dashboard: ForegroundDashboard
        do {
            dashboard = try await ForegroundDashboard.start(
                port: port, portOption: "--port", seed: 1, Dashboard(mode: .off), pages: pages(demo))
        } catch {
            console.error(bindFailure("\(error)"))
            throw ExitStatus.unavailable
        }
        console.print("\(dashboard.url): open it in a browser; Ctrl-C ends")
        _ = await events.next()
        await dashboard.stop()
    }

    private static func isPicture(_ path: String) -> Bool { path.lowercased().hasSuffix(".svg") }

    /// Returns the message for a port that cannot be bound. The usual cause is another demonstration.
    private func bindFailure(_ error: String) -> String {
        guard error.contains("(EADDRINUSE)") else { return error }
        return
            "cannot bind 127.0.0.1:\(port): address already in use (EADDRINUSE); if another 'slowlane demo' runs, open "
            + "http://127.0.0.1:\(port)/ or stop it; otherwise choose another port with --port, such as --port 0"
    }

    private func pages(_ demo: Demo) -> AdditionalPages {
        AdditionalPages(action: { path, query, body in
            guard path == "act" else { return nil }
            guard let viewer = Self.value("viewer", in: query) else { return .invalid("expected ?viewer=NAME") }
            if let reason = demo.act(body, by: viewer) { return .invalid(reason) }
            return .text("{}", type: "application/json")
        }) { path, query in
            if path == "run.json" || path == "live" {
                guard let client = Self.value("client", in: query).flatMap(Demo.Client.init(rawValue:)) else {
                    return .invalid("expected ?client=current or ?client=legacy")
                }
                if path == "live" {
                    let stream = demo.events(client, viewer: Self.value("viewer", in: query))
                    return .events {
                        var iterator = stream.makeAsyncIterator()
                        return await iterator.next()
                    }
                }
                do {
                    return .text(try demo.document(client), type: "application/json")
                } catch {
                    return .invalid("\(error)")
                }
            }
            return Demo.page(path).map { .text($0.text, type: $0.type) }
        }
    }

    /// Returns the value of a name in a query of letters and digits; `nil` if there is none.
    private static func value(_ name: String, in query: String) -> String? {
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
            if parts.count == 2, parts[0] == name { return parts[1] }
        }
        return nil
    }
}
