internal import Client
internal import Determinism
internal import Logging

/// The store of a notes client, as its driver sees it: commits with a change by the user, commits after those of other
/// processes, and the files of attachments.
final class NotesStorage: LiveStore {
    /// The user's change in progress.
    struct UserChange {
        /// Whether the first commit that follows the change has a result.
        var isCommitted = false
        /// Whether the change was undone, because another process has changed the store first.
        var isUndone = false
        /// The reason why the change cannot be made durable.
        var error: SyncStoreError?
    }

    let store: SyncStore
    private let logger: Logger
    var userChange: UserChange?

    init(_ store: SyncStore, logger: Logger) {
        self.store = store
        self.logger = logger
    }

    func close() { store.close() }

    func execute(_ change: StoreChange) -> CommitResult<NotesEngine> {
        do {
            switch try store.commit(change) {
            case .committed:
                userChange?.isCommitted = true
                return .committed
            case .stale(let foreign):
                let attachments = loadAttachments()
                return .rejected { [self] engine, now in
                    if engine.sync.commitWasStale(foreign, at: now) {
                        userChange?.isCommitted = true
                        userChange?.isUndone = true
                    }
                    if let attachments { engine.attachments.attachmentsChanged(attachments) }
                }
            }
        } catch {
            return failed(error)
        }
    }

    func refuse(_ reason: String) -> CommitResult<NotesEngine> { failed(SyncStoreError(.unwritable, reason)) }

    /// Returns the result of a commit that has failed: the user's change is undone, other changes are committed again.
    private func failed(_ error: SyncStoreError) -> CommitResult<NotesEngine> {
        logger.error("\(error)")
        guard userChange?.isCommitted == false else { return .failed(reason: "\(error)") }
        userChange?.isCommitted = true
        userChange?.error = error
        return .rejected { engine, now in engine.sync.undoUserChange(at: now) }
    }

    // MARK: Attachments

    /// Returns the attachments of the store; `nil` if it cannot be read now: the next change of it is another occasion.
    func loadAttachments() -> [LocalAttachment]? {
        do {
            return try store.attachments()
        } catch {
            logger.warning("\(error)")
            return nil
        }
    }

    func executeNext(of engine: inout NotesEngine) -> ((inout NotesEngine, Instant) -> Void)? {
        engine.takeStoreAction().map { action in
            let result = execute(action)
            return { engine, now in result(&engine.attachments, now) }
        }
    }

    /// Executes an action on attachments. Returns the input of their lane that follows.
    private func execute(_ action: AttachmentLane.StoreAction) -> (inout AttachmentLane, Instant) -> Void {
        switch action {
        case .commit(let attachments):
            do {
                try store.commit(attachments)
                return { lane, now in lane.committed(at: now) }
            } catch {
                logger.error("\(error)")
                return { lane, now in lane.commitFailed(at: now) }
            }
        case .read(let attachment, let range):
            do {
                let bytes = try store.bytes(of: attachment, in: range)
                return { lane, now in lane.bytesRead(bytes, of: attachment.id, range: range, at: now) }
            } catch {
                return { lane, now in
                    lane.readFailed(error.description, of: attachment.id, range: range, at: now)
                }
            }
        case .hashPart(let attachment):
            let hasher = (try? store.hash(of: attachment)) ?? nil
            return { lane, now in lane.partHashed(hasher, of: attachment.id, at: now) }
        case .write(let bytes, let offset, let attachment):
            do {
                try store.write(bytes, at: offset, to: attachment)
                return { _, _ in }
            } catch {
                return { lane, now in lane.writeFailed(error.description, of: attachment.id, at: now) }
            }
        case .discard(let attachment):
            try? store.discardBytes(of: attachment)
            return { _, _ in }
        }
    }
}
