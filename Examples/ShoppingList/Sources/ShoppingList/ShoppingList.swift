// A shopping list that works offline: its items are JSON objects in the collection /items/ of a server (server.py).

import Client
import LiveClient

struct Item: Codable, Hashable, Sendable {
    var name: String
    var isBought = false
}

struct ShoppingList: Sendable {
    /// An item with what is to be shown beside it.
    struct Row: Sendable {
        let id: RecordID
        let item: Item
        let mark: String
    }

    struct UnknownItem: Error, CustomStringConvertible {
        let name: String
        var description: String { "the list has no '\(name)'" }
    }

    let client: SyncClient

    /// Opens the list in a file, and synchronises it whenever the server can be reached.
    init(file: String, url: String, user: String, password: String) async throws {
        var configuration = try SyncClientConfiguration(
            url: url, user: user, credentials: .password(password), storePath: file)
        // The index has whole items; the server sets `updated`, which is no reason for a conflict.
        configuration.resource = JSONResource(
            name: "shopping items", path: "/items/", ignoring: ["updated"], listsContents: true)
        client = try await SyncClient.start(configuration)
    }

    // MARK: Changes: each is in the file when its call returns, and is sent when the server can be reached

    func add(_ name: String) async throws { _ = try await client.create(RecordContent(encoding: Item(name: name))) }

    func buy(_ name: String) async throws {
        try await client.edit(find(name)) { (item: inout Item) in item.isBought = true }
    }

    func rename(_ name: String, to newName: String) async throws {
        try await client.edit(find(name)) { (item: inout Item) in item.name = newName }
    }

    func remove(_ name: String) async throws { try await client.delete(find(name)) }

    /// Ends a conflict with the version of this device, or with that of the server.
    func keep(_ name: String, mine: Bool) async throws { try await client.resolve(find(name), mine ? .mine : .theirs) }

    /// Gives up a change that the server has rejected.
    func discard(_ name: String) async throws { try await client.dismiss(find(name)) }

    private func find(_ name: String) async throws -> RecordID {
        guard let row = try await rows().first(where: { $0.item.name == name }) else { throw UnknownItem(name: name) }
        return row.id
    }

    // MARK: The view

    func rows() async throws -> [Row] { try Self.rows(of: try await client.rows()) }

    /// Returns the items in order, as they are shown.
    static func rows(of records: [RecordRow]) throws -> [Row] {
        try records.map { record in
            let item = try record.content.decode(Item.self)
            let mark =
                switch record.icon {
                case .none: ""
                case .upload: record.isDeleted ? "  (removed, not sent)" : "  (not sent)"
                case .conflict: "  (conflict: \(theirs(record)))"
                case .error: "  (refused: \(record.problem ?? ""))"
                }
            return Row(id: record.id, item: item, mark: mark)
        }.sorted { ($0.item.name, $0.id) < ($1.item.name, $1.id) }
    }

    private static func theirs(_ record: RecordRow) -> String {
        guard let item = try? record.theirs?.decode(Item.self) else { return "removed elsewhere" }
        return "elsewhere \(item.isBought ? "[x]" : "[ ]") \(item.name)"
    }

    /// Returns the lines of the screen.
    static func lines(_ rows: [Row]) -> [String] {
        rows.map { "\($0.item.isBought ? "[x]" : "[ ]") \($0.item.name)\($0.mark)" }
    }
}
