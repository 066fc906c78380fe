/// The look of records: how a user interface would draw them.
public struct RecordPresentation: Sendable {
    /// A record with what is pending for it.
    public struct State: Sendable {
        /// The record.
        public let record: LocalRecord
        /// Its entries in order.
        public let entries: [OutboxEntry]
        /// The belief about connectivity.
        public let connectivity: Connectivity

        /// The row of this client.
        public var row: RecordRow {
            let problem = entries.lazy.compactMap(\.parked).first
            var kept: [RecordContent] = []
            let base = record.theirs == nil ? nil : record.baseContent
            for case let content? in [record.mine, record.theirs?.content, base] where !kept.contains(content) {
                kept.append(content)
            }
            return RecordRow(
                id: record.id, content: record.mine,
                icon: problem != nil
                    ? .error : record.theirs != nil ? .conflict : entries.isEmpty ? .none : .upload,
                isDeleted: record.isDeleted, revision: record.base?.description, kept: kept, problem: problem,
                theirs: record.theirs?.content)
        }
    }

    /// Returns the row of a record; `nil` if the record is not shown.
    public var row: @Sendable (State) -> RecordRow? = { $0.row }
    /// Returns the shown number of changes from the number of those that wait to be sent and of the parked ones.
    public var count: @Sendable (_ waiting: Int, _ parked: Int) -> Int = { waiting, _ in waiting }
    /// Whether rows depend on the connectivity, so that all are drawn again when it changes.
    public var dependsOnConnectivity = false

    /// Creates the presentation of this client.
    public init() {}
}
