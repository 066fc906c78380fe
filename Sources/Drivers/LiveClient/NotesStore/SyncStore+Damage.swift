internal import Client
internal import Foundation
internal import GRDB

extension SyncStore {
    /// Rows that cannot be read.
    struct Damage {
        var reasons: [RecordID: String] = [:]
        private var records: [Data] = []
        private var sequences: [Int] = []

        mutating func append(_ row: Row, id: RecordID, _ reason: String) {
            reasons[id] = reason
            records.append(row[0])
        }

        mutating func append(sequence: Int, id: RecordID, _ reason: String) {
            reasons[id] = reason
            sequences.append(sequence)
        }

        /// Moves the rows to the tables of damaged rows.
        func save(_ database: Database) throws {
            for id in records {
                try database.execute(
                    sql: "INSERT INTO damaged_record SELECT * FROM record WHERE id = ?", arguments: [id])
                try database.execute(sql: "DELETE FROM record WHERE id = ?", arguments: [id])
            }
            for sequence in sequences {
                try database.execute(
                    sql: "INSERT INTO damaged_outbox SELECT * FROM outbox WHERE sequence = ?", arguments: [sequence])
                try OutboxEntry.delete(sequence, database)
            }
            for (id, reason) in reasons { try Quarantine.save(id, reason, database) }
        }
    }
}
