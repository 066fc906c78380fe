internal import Foundation
internal import GRDB
internal import NotesContract
internal import SyncEngine

/// The `note` table.
extension LocalNote {
    init(_ row: Row) throws {
        func content(_ prefix: String) -> Content? {
            let date: String? = row["\(prefix)date"]
            return date.map {
                Content(
                    title: String(bytes: row["\(prefix)title"]), text: String(bytes: row["\(prefix)text"]), date: $0)
            }
        }
        let base: String? = row["base"]
        let theirs: String? = row["theirs"]
        let isInConflict: Bool = row["in_conflict"]
        guard let mine = content("") else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
        self.init(
            uuid: row["uuid"], base: try base.map(Revision.stored), baseContent: content("base_"), mine: mine,
            isDeleted: row["deleted"], edits: row["edits"],
            theirs: isInConflict
                ? Theirs(revision: try theirs.map(Revision.stored), content: content("theirs_")) : nil,
            problem: row["problem"])
    }

    func insert(_ database: Database) throws {
        try database.execute(
            sql: "INSERT OR REPLACE INTO note VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            arguments: [
                uuid, base?.description, baseContent?.title?.bytes, baseContent?.text?.bytes, baseContent?.date,
                mine.title?.bytes, mine.text?.bytes, mine.date, isDeleted, edits, theirs != nil,
                theirs?.revision?.description,
                theirs?.content?.title?.bytes, theirs?.content?.text?.bytes, theirs?.content?.date, problem,
            ])
    }
}

/// The `outbox` table.
extension OutboxEntry {
    init(_ row: Row) throws {
        let base: String? = row["base"]
        let name: String = row["kind"]
        guard let kind = Kind(rawValue: name) else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
        self.init(
            operation: row["operation"], sequence: row["sequence"], uuid: row["uuid"], kind: kind,
            draft: NoteDraft(date: row["date"], title: String(bytes: row["title"]), text: String(bytes: row["text"])),
            edits: row["edits"],
            base: try base.map(Revision.stored), attempts: row["attempts"])
    }

    func insert(_ database: Database) throws {
        try database.execute(
            sql: "INSERT OR REPLACE INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            arguments: [
                sequence, operation, uuid, kind.rawValue, draft.title?.bytes, draft.text?.bytes, draft.date, edits,
                base?.description,
                attempts,
            ])
    }
}

extension Revision {
    fileprivate static func stored(_ text: String) throws -> Revision {
        guard let revision = Revision(text) else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
        return revision
    }
}

extension String {
    fileprivate init?(bytes: Data?) {
        guard let bytes else { return nil }
        self.init(decoding: bytes, as: UTF8.self)
    }

    fileprivate var bytes: Data { Data(utf8) }
}
