extension History {
    /// What a run records about an actor besides the actions of users.
    public enum Notice: Hashable, Sendable {
        /// The kind of a device's interface has changed.
        case usesInterface(Scenario.NetworkEntry.Interface)
        /// The action of an optional step is not performed.
        case skipped(Reason)
        /// The reaction of a workload that the actor has started is not possible: the state to which it reacts has ended
        /// in the meantime.
        case reactionImpossible(Reason)
        /// The runner restores all links.
        case restoresLinks
        /// The client sends bytes that are not HTTP, for this reason of the parser.
        case notHTTP(String)
        /// A version of the client does not open the store of a newer one.
        case storeRefused(version: Int, store: Int)
        /// An app does not start, for this reason.
        case notStarted(String)
        /// The device shows a push notice with this text, because its app does not run.
        case pushed(String)

        /// The name of the runner as an actor.
        public static let runner = "runner"
    }
}

extension History.Notice: CustomStringConvertible, EncodedValue {
    public var description: String {
        switch self {
        case .usesInterface(let kind): "uses \(kind.rawValue)"
        case .skipped(let reason), .reactionImpossible(let reason): "does not act: \(reason)"
        case .restoresLinks: "restores all links"
        case .notHTTP(let reason): "sends bytes that are not HTTP: \(reason)"
        case .storeRefused(let version, let store): "version \(version) does not open the store of version \(store)"
        case .notStarted(let reason): reason
        case .pushed(let text): "gets the push notice '\(text)'"
        }
    }

    package func encode(into encoder: inout EventEncoder) {
        switch self {
        case .usesInterface(let kind):
            encoder.begin(1)
            encoder.add(kind)
        case .skipped(let reason):
            encoder.begin(2)
            encoder.add(reason)
        case .reactionImpossible(let reason):
            encoder.begin(3)
            encoder.add(reason)
        case .restoresLinks: encoder.begin(4)
        case .notHTTP(let reason):
            encoder.begin(5)
            encoder.add(reason)
        case .storeRefused(let version, let store):
            encoder.begin(6)
            encoder.add(version)
            encoder.add(store)
        case .notStarted(let reason):
            encoder.begin(7)
            encoder.add(reason)
        case .pushed(let text):
            encoder.begin(8)
            encoder.add(text)
        }
    }
}
