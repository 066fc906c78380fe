internal import LinkModel

/// The conduits of a link's open connections, by identifier.
///
/// ``contains(_:)`` sorts out identifiers of connections that have ended; the subscript traps for them.
struct ConduitTable: ~Copyable {
    private var conduits: [Conduit?] = []
    /// The identifiers of the conduits, so that a look-up does not touch the conduits themselves.
    private var ids: [FlowID?] = []

    /// Whether a connection is open.
    func contains(_ id: FlowID) -> Bool { id.index < ids.count && ids[id.index] == id }

    /// The conduit of an open connection, in place.
    subscript(id: FlowID) -> Conduit {
        _read {
            precondition(contains(id), "connection \(id) has ended")
            yield conduits[id.index]!
        }
        _modify {
            precondition(contains(id), "connection \(id) has ended")
            yield &conduits[id.index]!
        }
    }

    /// Adds the conduit of a new connection.
    mutating func insert(_ conduit: Conduit, _ id: FlowID) {
        while ids.count <= id.index {
            conduits.append(nil)
            ids.append(nil)
        }
        precondition(ids[id.index] == nil, "connection \(id) is opened in the slot of an open one")
        conduits[id.index] = conduit
        ids[id.index] = id
    }

    /// Removes the conduit of a connection that ends.
    mutating func remove(_ id: FlowID) {
        precondition(contains(id), "connection \(id) has ended")
        conduits[id.index] = nil
        ids[id.index] = nil
    }

    /// The size of the table; an index below it may be free.
    var capacity: Int { ids.count }

    /// The identifier of the connection in a slot, if it is in use.
    func id(at index: Int) -> FlowID? { ids[index] }

    /// The open connections.
    var openConnections: [FlowID] { ids.compactMap { $0 } }
}
