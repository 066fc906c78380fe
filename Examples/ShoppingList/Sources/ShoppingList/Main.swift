// The terminal of the list. With a command it changes the list and waits for the server; without one it shows the list
// whenever it changes, and reads commands.

import Client
@preconcurrency import Foundation
import LiveClient

@main enum Main {
    static let usage = """
        usage: ShoppingList [--server URL] [--user NAME:PASSWORD] [--file FILE] [COMMAND]
        commands: add NAME, buy NAME, rename NAME NEW, remove NAME, mine NAME, theirs NAME, discard NAME, sync
        """

    static func main() async {
        // Piped output appears line by line, too.
        setvbuf(stdout, nil, _IOLBF, 0)
        do {
            try await run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            print("error: \(error)")
            exit(1)
        }
    }

    static func run(_ arguments: [String]) async throws {
        var options = ["--server": "http://127.0.0.1:9000", "--user": "ada:secret", "--file": "shopping.db"]
        var words = arguments[...]
        while let name = words.first, options[name] != nil, words.count > 1 {
            options[name] = words.dropFirst().first
            words = words.dropFirst(2)
        }
        let user = (options["--user"] ?? "").split(separator: ":", maxSplits: 1).map(String.init)
        guard words.first?.hasPrefix("-") != true, user.count == 2 else { return print(usage) }
        let list = try await ShoppingList(
            file: options["--file"] ?? "", url: options["--server"] ?? "", user: user[0], password: user[1])
        if words.isEmpty {
            try await Screen(list).run()
        } else {
            try await change(list, Array(words))
            let problem = try await list.client.sync(within: .seconds(30))
            for line in ShoppingList.lines(try await list.rows()) { print(line) }
            if let problem { print("not synchronised: \(problem.reason)") }
        }
        await list.client.stop()
    }

    /// Executes a command.
    static func change(_ list: ShoppingList, _ words: [String]) async throws {
        switch (words.first, words.dropFirst().first, words.dropFirst(2).first) {
        case ("add", let name?, nil): try await list.add(name)
        case ("buy", let name?, nil): try await list.buy(name)
        case ("rename", let name?, let newName?): try await list.rename(name, to: newName)
        case ("remove", let name?, nil): try await list.remove(name)
        case ("mine", let name?, nil): try await list.keep(name, mine: true)
        case ("theirs", let name?, nil): try await list.keep(name, mine: false)
        case ("discard", let name?, nil): try await list.discard(name)
        case ("sync", nil, nil): try await list.client.sync()
        default: print(usage)
        }
    }
}

/// A screen that is drawn from the view of the client, whatever has changed it: the user, the server, or another program.
struct Screen {
    private let list: ShoppingList
    private let isTerminal = isatty(1) == 1

    init(_ list: ShoppingList) { self.list = list }

    /// Shows the list until standard input ends or has the line `quit`.
    func run() async throws {
        let drawing = Task {
            var shown: [String] = []
            for await records in try await list.client.updates() {
                let lines = try await screen(of: records)
                if lines != shown { draw(lines) }
                shown = lines
            }
        }
        for await line in Self.typedLines {
            let words = line.split(separator: " ").map(String.init)
            if words == ["quit"] { break }
            do { try await Main.change(list, words) } catch { print("error: \(error)") }
        }
        drawing.cancel()
    }

    private func screen(of records: [RecordRow]) async throws -> [String] {
        let status = try await list.client.status()
        let state = status.problem?.reason ?? (status.outbox == 0 ? "up to date" : "\(status.outbox) to send")
        return ["--- \(state)"] + ShoppingList.lines(try ShoppingList.rows(of: records))
    }

    private func draw(_ lines: [String]) {
        print(isTerminal ? "\u{1B}[H\u{1B}[J" + lines.joined(separator: "\n") : lines.joined(separator: "\n"))
    }

    /// The lines of standard input, which are read on a thread of their own because reading blocks.
    private static var typedLines: AsyncStream<String> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
    }
}
