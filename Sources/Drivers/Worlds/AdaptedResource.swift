public import Client

/// A resource with another request of an operation, or another equality of contents.
public struct AdaptedResource: SyncResource {
    private let base: any SyncResource
    /// Returns the operation that is requested in place of another one.
    public var requested: @Sendable (SyncOperation) -> SyncOperation = { $0 }
    /// Returns whether two contents are equal for the user.
    public var equality: @Sendable (RecordContent, RecordContent) -> Bool

    /// Creates a resource that does what another one does.
    public init(_ base: any SyncResource) {
        self.base = base
        equality = { base.areEqual($0, $1) }
    }

    public var name: String { base.name }
    public var serverDescription: String { base.serverDescription }
    public var listsContents: Bool { base.listsContents }
    public var ignoredMembers: Set<String> { base.ignoredMembers }
    public var dateMember: String? { base.dateMember }

    public func request(for operation: SyncOperation) -> SyncRequestContent { base.request(for: requested(operation)) }

    public func reply(to operation: SyncOperation, _ response: SyncResponse) -> SyncReply {
        base.reply(to: operation, response)
    }

    public func areEqual(_ left: RecordContent, _ right: RecordContent) -> Bool { equality(left, right) }
}
