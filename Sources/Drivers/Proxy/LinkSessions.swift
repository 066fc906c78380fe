internal import Impairment
internal import LinkModel

/// The sessions of a link by flow. Flow indices are reused, so the whole flow ID is compared.
struct LinkSessions {
    private struct Entry {
        let flow: FlowID
        let session: Session
    }

    /// By flow index; `nil` after the last action of a connection.
    private var entries: [Entry?] = []
    /// Sessions with pending actions whose flow index has been reused.
    private var displaced: [FlowID: Session] = [:]
    /// The clients' ports and the numbers of the connections by flow index, which outlive the sessions: events are reported later.
    private var clientPorts: [UInt16] = []
    private var numbers: [Int] = []

    /// The sessions whose last actions have not been executed, without the displaced ones.
    var all: some Sequence<Session> { entries.lazy.compactMap { $0?.session } }

    /// Adds the session of a connection that has been opened.
    mutating func add(_ session: Session, _ id: FlowID, number: Int) {
        while entries.count <= id.index {
            entries.append(nil)
            clientPorts.append(0)
            numbers.append(0)
        }
        // The last actions of the previous connection with this flow index may not have been executed.
        if let entry = entries[id.index] { displaced[entry.flow] = entry.session }
        entries[id.index] = Entry(flow: id, session: session)
        clientPorts[id.index] = session.clientPort
        numbers[id.index] = number
    }

    /// Returns the session of a connection; `nil` if it has ended, or if another connection has its flow index.
    subscript(_ id: FlowID) -> Session? {
        guard id.index < entries.count, let entry = entries[id.index], entry.flow == id else { return nil }
        return entry.session
    }

    /// Returns the session of an action, and releases it with its last action.
    mutating func take(for timedAction: SharedLink.TimedAction) -> Session? {
        let isLast = if case .ended = timedAction.action { true } else { false }
        if let entry = entries[timedAction.flow.index], entry.flow == timedAction.flow {
            if isLast { entries[timedAction.flow.index] = nil }
            return entry.session
        }
        return isLast ? displaced.removeValue(forKey: timedAction.flow) : displaced[timedAction.flow]
    }

    /// Returns the client's port of the last connection with the flow index.
    func clientPort(of id: FlowID) -> UInt16 { clientPorts[id.index] }

    /// Returns the number of the last connection with the flow index.
    func number(of id: FlowID) -> Int { numbers[id.index] }

    /// Releases all sessions.
    mutating func removeAll() {
        entries = []
        displaced = [:]
    }
}
