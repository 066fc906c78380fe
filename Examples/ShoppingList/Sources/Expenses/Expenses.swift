// Expenses: a second resource in one file. EXPENSES_SERVER is the URL of the server, such as https://api.example.com.

import Client
@preconcurrency import Foundation
import LiveClient

struct Expense: Codable, Hashable, Sendable {
    /// In cents.
    var amount: Int
    var note: String
}

@main enum Main {
    static func main() async {
        setvbuf(stdout, nil, _IOLBF, 0)
        do { try await run(Array(CommandLine.arguments.dropFirst())) } catch {
            print("error: \(error)")
            exit(1)
        }
    }

    static func run(_ words: [String]) async throws {
        guard let file = words.first else { return print("usage: Expenses FILE [NOTE CENTS|mine|theirs]") }
        var configuration = try SyncClientConfiguration(
            url: ProcessInfo.processInfo.environment["EXPENSES_SERVER"] ?? "http://127.0.0.1:9000",
            user: "ada", credentials: .password("secret"), storePath: file)
        configuration.resource = JSONResource(
            name: "expenses", path: "/expenses/", ignoring: ["updated"], listsContents: true)
        let client = try await SyncClient.start(configuration)
        do { try await use(client, words) } catch {
            await client.stop()
            throw error
        }
        await client.stop()
    }

    static func use(_ client: SyncClient, _ words: [String]) async throws {
        if words.count == 3 {
            let rows = try await client.rows().filter { try $0.content.decode(Expense.self).note == words[1] }
            switch (rows.first?.id, Int(words[2])) {
            case (let id?, let amount?):
                try await client.edit(id) { (expense: inout Expense) in expense.amount = amount }
            case (nil, let amount?):
                _ = try await client.create(RecordContent(encoding: Expense(amount: amount, note: words[1])))
            case (let id?, nil): try await client.resolve(id, words[2] == "mine" ? .mine : .theirs)
            case (nil, nil): break
            }
        }
        let problem = try await client.sync(within: .seconds(15))
        for line in try await client.rows().map(line).sorted() { print(line) }
        if let problem { print("not synchronised: \(problem.reason)") }
    }

    static func line(_ row: RecordRow) throws -> String {
        let expense = try row.content.decode(Expense.self)
        let line = "\(expense.note): \(expense.amount)"
        switch row.icon {
        case .none: return line
        case .upload: return line + "  (not sent)"
        case .error: return line + "  (refused: \(row.problem ?? ""))"
        case .conflict:
            let theirs = try row.theirs?.decode(Expense.self).amount
            return line + "  (conflict: elsewhere \(theirs.map(String.init) ?? "deleted"))"
        }
    }
}
