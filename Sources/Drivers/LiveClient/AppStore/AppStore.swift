//  LiveClient/AppStore: the store of an app in an SQLite file.
//
//  Owns: the schema, the commit of a change as one transaction.
//
//  Does not own: what the values mean (the engines of the apps).

public import Client
internal import Foundation
internal import GRDB

/// The error of a store.
public struct AppStoreError: Error, CustomStringConvertible, Sendable {
    /// What failed, where and why.
    public let description: String
}

/// The values of an app in an SQLite file. A commit is one transaction.
///
/// The store reads all values at a start, and replaces whole values.
public final class AppStore {
    private static let version = 1
    private let database: DatabaseQueue

    /// Opens a store, and creates it if the file does not exist.
    public init(path: String) throws(AppStoreError) {
        do {
            var configuration = Configuration()
            configuration.prepareDatabase { database in
                try database.execute(sql: "PRAGMA journal_mode = WAL")
                try database.execute(sql: "PRAGMA synchronous = FULL")
            }
            database = try DatabaseQueue(path: path, configuration: configuration)
            let version = try database.write { database in
                let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
                guard version == 0 else { return version }
                try database.execute(
                    sql: "CREATE TABLE value (key TEXT NOT NULL PRIMARY KEY, content BLOB NOT NULL) STRICT")
                try database.execute(sql: "PRAGMA user_version = \(Self.version)")
                return Self.version
            }
            guard version == Self.version else {
                throw AppStoreError(description: "\(path) has the version \(version); expected \(Self.version)")
            }
        } catch let error as AppStoreError {
            throw error
        } catch {
            throw AppStoreError(description: "cannot open the store \(path): \(error)")
        }
    }

    /// Returns what is committed.
    public func load() throws(AppStoreError) -> AppState {
        do {
            return try database.read { database in
                AppState(
                    try Row.fetchAll(database, sql: "SELECT key, content FROM value").map { row in
                        let content: [UInt8] = Array(row["content"] as Data)
                        return (key: row["key"], value: content)
                    })
            }
        } catch {
            throw AppStoreError(description: "cannot read the store: \(error)")
        }
    }

    /// Commits a change as a whole.
    public func commit(_ change: AppChange) throws(AppStoreError) {
        do {
            try database.write { database in
                for (key, value) in change.sorted {
                    if let value {
                        try database.execute(
                            sql: "INSERT OR REPLACE INTO value (key, content) VALUES (?, ?)",
                            arguments: [key, Data(value)])
                    } else {
                        try database.execute(sql: "DELETE FROM value WHERE key = ?", arguments: [key])
                    }
                }
            }
        } catch {
            throw AppStoreError(description: "cannot commit to the store: \(error)")
        }
    }

    /// Closes the file.
    public func close() { try? database.close() }
}
