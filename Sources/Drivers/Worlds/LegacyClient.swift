public import Client

/// The legacy client (`client: legacy`): the reference client with eight known defects.
public enum LegacyClient {
    /// Adapts the configuration of the reference client.
    public static let adapt: RunBehavior.ClientAdaptation = { configuration in
        showEmptyNotes(&configuration)
        mergeConflicts(&configuration)
        distrustEqualContents(&configuration)
        dropLaterEdits(&configuration)
        forgetFailedDeletions(&configuration)
        undoDeletions(&configuration)
        ignoreRemoteDeletions(&configuration)
        repeatEditsOfMissingNotes(&configuration)
    }

    /// A note that cannot be read is shown as another, empty one.
    public static func showEmptyNotes(_ configuration: inout SyncEngine.Configuration) {
        configuration.behavior.placeholder = { _, makeID in
            LocalRecord(id: makeID(), mine: NoteContent(title: nil, text: nil, date: "").encoded)
        }
    }

    /// The texts of both sides of a conflict become one note, which is taken for that of the server.
    public static func mergeConflicts(_ configuration: inout SyncEngine.Configuration) {
        configuration.behavior.replaceConflictDecisions { [resource = configuration.resource] conflict in
            guard !conflict.record.isDeleted, let content = conflict.theirs.content,
                !resource.areEqual(content, conflict.record.mine)
            else { return nil }
            var merged = NoteContent(conflict.record.mine)
            let other = NoteContent(content)
            let isSameTitle = merged.title == other.title
            merged.title = "Conflict: " + (merged.title ?? "") + (isSameTitle ? "" : " vs \(other.title ?? "")")
            merged.text = "Local text:\n\(merged.text ?? "")\nRemote text:\n\(other.text ?? "")"
            return .ended(merged.encoded)
        }
    }

    /// A revision with the content of the client's own change is that of another client.
    public static func distrustEqualContents(_ configuration: inout SyncEngine.Configuration) {
        var resource = AdaptedResource(configuration.resource)
        resource.equality = { _, _ in false }
        configuration.resource = resource
    }

    /// The response to a change replaces later edits.
    public static func dropLaterEdits(_ configuration: inout SyncEngine.Configuration) {
        configuration.policy.laterEdits = .dropped
    }

    /// The tombstone of a note is removed whatever the response to its deletion is.
    public static func forgetFailedDeletions(_ configuration: inout SyncEngine.Configuration) {
        configuration.behavior.replaceOutcomes { attempt in
            if case .unauthorized = attempt.result { return nil }
            return attempt.entry.kind == .delete ? .finished(nil) : nil
        }
    }

    /// The newer revision of a note ends its deletion by the user.
    public static func undoDeletions(_ configuration: inout SyncEngine.Configuration) {
        configuration.behavior.replaceConflictDecisions { conflict in
            conflict.record.isDeleted && conflict.theirs.content != nil ? .resolved(.theirs) : nil
        }
    }

    /// A note that is not on the server stays as it is.
    public static func ignoreRemoteDeletions(_ configuration: inout SyncEngine.Configuration) {
        configuration.behavior.replaceAbsenceDecisions { $0.record.theirs == nil ? .kept : nil }
    }

    /// An edit of a note that is not on the server is sent again.
    public static func repeatEditsOfMissingNotes(_ configuration: inout SyncEngine.Configuration) {
        configuration.behavior.replaceOutcomes { attempt in
            attempt.entry.kind == .update && attempt.result == .missing ? .repeated : nil
        }
    }
}
