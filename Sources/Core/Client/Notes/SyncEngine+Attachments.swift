internal import Determinism

/// What the transfers of attachments need from the engine.
extension SyncEngine {
    /// The conditions under which attachments are transferred.
    var attachmentGate: AttachmentLane.Gate {
        let isAllowed = policy.attachmentInterfaces == .any || !path.interface.isMetered
        return AttachmentLane.Gate(
            isUsable: configured != nil && isInterfaceUsable && isAllowed,
            isOpen: mayTransmit && !token.isRefreshNeeded && path.probeAt == nil && path.isReachable == true,
            floor: path.floor, rounds: rounds,
            history: account?.history)
    }

    /// Returns whether the server has a record, and no creation or deletion of it is pending.
    func isOnServer(_ id: RecordID) -> Bool {
        guard let record = records[id], record.base != nil, !record.isDeleted else { return false }
        if let theirs = record.theirs, theirs.revision == nil { return false }
        return entries(of: id).allSatisfy { $0.kind != .create && $0.kind != .delete }
    }

    /// The server has rejected the credentials of an attachment's request that was sent with those of a generation.
    mutating func attachmentCredentialsRejected(status: Int, generation: Int, at now: Instant) {
        tick(now)
        guard token.tokens != nil else { return pause(because: "the server rejects the user (\(status))") }
        // The request is repeated with the current access token.
        if generation < token.generation { rounds &+= 1 }
        credentialsRejected(status: status, generation: generation)
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
