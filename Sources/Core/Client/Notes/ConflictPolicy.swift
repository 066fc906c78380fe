internal import NotesContract
internal import Wire

/// A way to resolve conflicts without the user. It depends on the contents only, so that it decides the same on every device.
///
/// A deletion never wins over a change, but under ``mine`` and ``theirs``.
public enum ConflictPolicy: String, Hashable, Sendable, CaseIterable {
    /// The user resolves each conflict.
    case ask
    /// The version with the later date (``SyncResource/dateMember``) wins; the server's if they are equal.
    case latest
    /// Members that only one side has changed are merged. The user resolves the others.
    case fields
    /// As ``fields``; texts that both sides have changed are merged line by line (``LineMerge``).
    case lines
    /// The local side wins.
    case mine
    /// The server's side wins.
    case theirs

    /// Returns the resolution of a conflict; `nil` if the user decides.
    public func resolution(of conflict: RecordConflict, _ resource: any SyncResource) -> SyncEngine.Resolution? {
        switch self {
        case .ask: return nil
        case .mine: return .mine
        case .theirs: return .theirs
        case .latest, .fields, .lines: break
        }
        let mine = conflict.record.mine
        guard !conflict.record.isDeleted else { return .theirs }
        guard let theirs = conflict.theirs.content else { return .mine }
        if self == .latest {
            guard let left = resource.date(of: mine), let right = resource.date(of: theirs) else { return nil }
            return left > right ? .mine : .theirs
        }
        guard let merged = merged(conflict.record.baseContent, mine, theirs, resource) else { return nil }
        if resource.areEqual(merged, theirs) { return .theirs }
        return resource.areEqual(merged, mine) ? .mine : .write(merged)
    }

    /// Returns the content with the changes of both sides; `nil` if they contradict each other.
    private func merged(
        _ base: RecordContent?, _ mine: RecordContent, _ theirs: RecordContent, _ resource: any SyncResource
    ) -> RecordContent? {
        guard let mine = JSONText.parse(mine.bytes)?.object, let theirs = JSONText.parse(theirs.bytes)?.object else {
            return nil
        }
        let base = base.flatMap { JSONText.parse($0.bytes)?.object } ?? JSONObject()
        // The order of the members is that of the server, so that both sides merge to the same bytes.
        var result = theirs
        for name in Set(mine.keys + theirs.keys + base.keys).sorted() {
            let (old, left, right) = (base[name], mine[name], theirs[name])
            if name == resource.dateMember {
                result[name] = Self.isLater(left, right) ? left : right
            } else if resource.ignoredMembers.contains(name) || left == right || left == old {
                result[name] = right
            } else if right == old {
                result[name] = left
            } else if self == .lines, let old = old?.text, let left = left?.text, let right = right?.text,
                let text = LineMerge.merge(base: old, mine: left, theirs: right)
            {
                result[name] = .text(text)
            } else {
                return nil
            }
        }
        return RecordContent(Array(JSONValue.object(result).json.utf8))
    }

    private static func isLater(_ left: JSONValue?, _ right: JSONValue?) -> Bool {
        guard let left = left.flatMap(RecordDate.milliseconds) else { return false }
        return right.flatMap(RecordDate.milliseconds).map { left > $0 } ?? true
    }
}

/// The dates of records.
enum RecordDate {
    /// Returns the milliseconds since 1970 of an ISO 8601 date, or a number; `nil` for any other value.
    static func milliseconds(_ value: JSONValue) -> Int? {
        switch value {
        case .integer(let number): Int(exactly: number)
        case .text(let text): NoteDate.normalised(text).flatMap(NoteDate.milliseconds(stored:))
        default: nil
        }
    }
}

extension SyncResource {
    /// Returns the date of a content; `nil` if it has none.
    func date(of content: RecordContent) -> Int? {
        dateMember.flatMap { JSONText.parse(content.bytes)?.object?[$0] }.flatMap(RecordDate.milliseconds)
    }
}

extension SyncBehavior {
    /// Resolves conflicts by a policy; the user resolves those that it leaves open.
    public mutating func resolveConflicts(by policy: ConflictPolicy, of resource: any SyncResource) {
        replaceOpenConflicts { policy.resolution(of: $0, resource) }
    }

    /// Resolves conflicts between two contents with a function of the base, the local content and the server's; it returns
    /// the content to store, or `nil` if the user decides. Conflicts with deletions stay open.
    public mutating func resolveConflicts(
        with resolve:
            @escaping @Sendable (
                _ base: RecordContent?, _ mine: RecordContent, _ theirs: RecordContent
            ) -> RecordContent?
    ) {
        replaceOpenConflicts { conflict in
            guard !conflict.record.isDeleted, let theirs = conflict.theirs.content else { return nil }
            return resolve(conflict.record.baseContent, conflict.record.mine, theirs).map { .write($0) }
        }
    }

    private mutating func replaceOpenConflicts(
        _ resolution: @escaping @Sendable (RecordConflict) -> SyncEngine.Resolution?
    ) {
        replaceConflictDecisions { conflict in
            guard conflict.decision == .open else { return nil }
            return resolution(conflict).map { .resolved($0) }
        }
    }
}

extension SyncEngine {
    /// Returns the resolution of a record's conflict by a policy; `nil` if the user decides, or there is no conflict.
    public func resolution(of id: RecordID, by policy: ConflictPolicy) -> Resolution? {
        guard let record = records[id], let theirs = record.theirs else { return nil }
        let areEqual = theirs.content.map { resource.areEqual($0, record.mine) } ?? false
        return policy.resolution(
            of: RecordConflict(record: record, theirs: theirs, areEqual: areEqual), resource)
    }
}
