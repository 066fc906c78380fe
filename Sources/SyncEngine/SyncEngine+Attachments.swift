internal import Determinism

/// What the transfers of attachments need from the engine.
extension SyncEngine {
    /// The conditions under which attachments are transferred.
    var attachmentGate: AttachmentLane.Gate {
        let isAllowed = policy.attachmentInterfaces == .any || !path.interface.isMetered
        return AttachmentLane.Gate(
            isUsable: configured != nil && isInterfaceUsable && isAllowed,
            isOpen: mayTransmit && path.probeAt == nil && path.isReachable == true, floor: path.floor, rounds: rounds,
            history: account?.history)
    }

    /// Returns whether the server has a record, and no creation or deletion of it is pending.
    func isOnServer(_ id: RecordID) -> Bool {
        guard let record = records[id], record.base != nil, !record.isDeleted else { return false }
        if let theirs = record.theirs, theirs.revision == nil { return false }
        return entries(of: id).allSatisfy { $0.kind != .create && $0.kind != .delete }
    }

    /// The server has rejected the credentials of an attachment's request.
    mutating func attachmentCredentialsRejected(status: Int, at now: Instant) {
        tick(now)
        pause(because: "the server rejects the user (\(status))")
    }

    /// The response to an attachment's request named another history than the store's: the index decides.
    mutating func attachmentHistoryDiffers(at now: Instant) {
        tick(now)
        indexWork.want()
    }

    /// Returns a number for an exchange that the engine does not start.
    mutating func makeExchangeNumber() -> Int {
        defer { nextExchange += 1 }
        return nextExchange
    }
}
