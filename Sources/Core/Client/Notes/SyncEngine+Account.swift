/// The account of the store: a store is bound by the first response that accepts the credentials.
extension SyncEngine {
    /// Compares the client's account with the store's when the client starts.
    mutating func compare(with configured: SyncAccount) {
        guard let stored = account else {
            account = configured
            (isAccountStored, isAccountTentative) = (false, true)
            return
        }
        let difference = AccountMismatch(stored: stored, found: configured)
        if !difference.hasSameUser || (stored.history == nil && stored.server != configured.server) {
            mismatch = difference
        }
    }

    /// Stores the first account, or an adopted one. A store belongs to no other account before a change is sent or the
    /// server accepts the credentials, so that a wrong address or password has no effect.
    mutating func storeAccount() {
        guard !isAccountStored else { return }
        isAccountStored = true
        pendingChange.account = account
        guard index.isAdopting, storedIndex != index else { return }
        storedIndex = index
        pendingChange.index = index
    }

    /// Takes back an account that was stored because a change was sent or the user adopted it: the server rejects the
    /// credentials, and has certainly executed no change.
    mutating func releaseAccount() {
        guard isAccountStored, isAccountTentative, !entries.values.contains(where: \.mayBeCommitted) else { return }
        isAccountStored = false
        pendingChange.account = .some(previousAccount)
    }

    /// Returns whether a reply shows that the server accepts the credentials. Only a user's own data has a history.
    func isAccepted(_ reply: SyncReply, to exchange: Exchange) -> Bool {
        switch reply.result {
        case .record, .index, .notModified, .missing, .conflict, .cursorExpired: true
        case .done: exchange.activity != .probe || reply.history != nil
        case .unauthorized, .forbidden: false
        default: reply.history != nil
        }
    }

    /// Returns the difference between the history of a response and the one that the store belongs to; `nil` if there is
    /// none. The first history of an account is stored once the server accepts the credentials.
    mutating func mismatch(of reply: SyncReply, to exchange: Exchange) -> AccountMismatch? {
        guard var account, let configured else { return nil }
        if let stored = account.history {
            var isSame = reply.history.map { $0.utf8.elementsEqual(stored.utf8) } ?? false
            // The response to a rejected request names no history.
            switch reply.result {
            case .forbidden, .serverError, .unavailable, .rejected, .cursorExpired:
                isSame = isSame || reply.history == nil
            default: break
            }
            guard isSame else {
                var found = configured
                found.history = reply.history
                return AccountMismatch(stored: account, found: found)
            }
            if reply.history == nil || account.server == configured.server { return nil }
        } else if let history = reply.history, isAccepted(reply, to: exchange) {
            account.history = history
        } else {
            return nil
        }
        account.server = configured.server
        self.account = account
        pendingChange.account = account
        return nil
    }
}
