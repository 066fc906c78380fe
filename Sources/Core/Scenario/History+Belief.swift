extension History {
    /// A client's belief about its connectivity.
    public enum Belief: Hashable, Sendable {
        /// Nothing is known yet.
        case unknown
        /// Requests are expected to succeed.
        case online
        /// The interface is down.
        case interfaceDown
        /// The policy does not allow the interface.
        case interfaceNotAllowed
        /// A request has failed, and the next one decides.
        case suspected
        /// The server cannot be reached, after a number of failures; `nil` if the client does not tell it.
        case unreachable(failures: Int?)

        /// The name, without the number of failures.
        public var name: String {
            switch self {
            case .unknown: "unknown"
            case .online: "online"
            case .interfaceDown: "interfaceDown"
            case .interfaceNotAllowed: "interfaceNotAllowed"
            case .suspected: "suspected"
            case .unreachable: "unreachable"
            }
        }
    }
}

extension History.Belief: CustomStringConvertible, EncodedValue {
    public var description: String {
        if case .unreachable(let failures?) = self { "\(name)(failures: \(failures))" } else { name }
    }

    package func encode(into encoder: inout EventEncoder) {
        switch self {
        case .unknown: encoder.begin(1)
        case .online: encoder.begin(2)
        case .interfaceDown: encoder.begin(3)
        case .interfaceNotAllowed: encoder.begin(4)
        case .suspected: encoder.begin(5)
        case .unreachable(let failures):
            encoder.begin(6)
            encoder.add(failures)
        }
    }
}
