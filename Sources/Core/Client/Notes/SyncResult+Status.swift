extension SyncResult {
    /// The result of a status that means the same for every resource; `nil` if it depends on the resource.
    public init?(status: Int, of operation: SyncOperation) {
        switch (operation, status) {
        case (_, 401): self = .unauthorized(status: status)
        case (_, 403): self = .forbidden(status: status)
        case (.index, 410), (.contents, 410): self = .cursorExpired
        case (.fetch, 404), (.fetch, 410), (.update, 404), (.update, 410), (.delete, 404), (.delete, 410),
            (.create, 404), (.create, 410):
            self = .missing
        case (_, 409), (_, 412): self = .conflict
        case (_, 408), (_, 425), (_, 429), (_, 502), (_, 503), (_, 504): self = .unavailable(status: status)
        case (_, 500...599): self = .serverError(status: status)
        default: return nil
        }
    }
}
