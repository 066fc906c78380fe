// A shopping list that works offline: the items are JSON objects in the collection /items/ of a server.
//
//     swift run ShoppingList 127.0.0.1:8000 add Milk

import Client
import LiveClient

struct Item: Codable, Hashable, Sendable {
    var name: String
    var isBought = false
}

struct ShoppingList: Sendable {
    let client: SyncClient

    /// Opens the list in a file, and synchronises it whenever the server can be reached.
    init(file: String, host: String, port: Int, user: String, password: String) async throws {
        var configuration = SyncClientConfiguration(
            host: host, port: port, user: user, password: password, storePath: file)
        configuration.resource = JSONResource(name: "shopping items", path: "/items/")
        client = try await SyncClient.start(configuration)
    }

    func add(_ name: String) async throws { _ = try await client.create(RecordContent(encoding: Item(name: name))) }

    func buy(_ name: String) async throws {
        for (id, item) in try await items() where item.name == name && !item.isBought {
            try await client.edit(id, RecordContent(encoding: Item(name: name, isBought: true)))
        }
    }

    func items() async throws -> [(id: RecordID, item: Item)] {
        try await client.rows().filter { !$0.isDeleted }.map { ($0.id, try $0.content.decode(Item.self)) }
            .sorted { ($0.1.name, $0.0) < ($1.1.name, $1.0) }
    }
}

@main enum Main {
    static func main() async throws {
        let words = CommandLine.arguments.dropFirst()
        let address = words.first?.split(separator: ":").map(String.init) ?? []
        guard address.count == 2, let port = Int(address[1]) else {
            return print("usage: ShoppingList HOST:PORT [add NAME | buy NAME]")
        }
        let list = try await ShoppingList(
            file: "shopping.db", host: address[0], port: port, user: "ada", password: "secret")
        switch (words.dropFirst().first, words.dropFirst(2).first) {
        case ("add", let name?): try await list.add(name)
        case ("buy", let name?): try await list.buy(name)
        default: break
        }
        let result = try await list.client.waitUntilComplete(timeout: .seconds(10))
        for (_, item) in try await list.items() { print(item.isBought ? "[x]" : "[ ]", item.name) }
        if result != .complete { print("not synchronised: \(result)") }
        await list.client.stop()
    }
}
