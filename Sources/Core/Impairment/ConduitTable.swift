internal import LinkModel

/// The conduits of a link's open connections, by identifier.
///
/// For a connection that has ended ``contains(_:)`` returns `false`, and the subscript traps.
///
/// The table manages its memory itself because a conduit is large and full of references, and every event reads some of
/// its fields in place. Reading a field of an array's element copies the element and retains all of its references.
struct ConduitTable: ~Copyable {
    /// The conduits; the memory at an index is initialised if and only if ``ids`` has an identifier there.
    private var conduits: UnsafeMutablePointer<Conduit>
    /// The number of conduits that the memory can hold.
    private var memoryCapacity = 8
    /// The identifiers of the open connections, by index.
    private var ids: [FlowID?] = []

    init() { conduits = .allocate(capacity: memoryCapacity) }

    deinit {
        for (index, id) in ids.enumerated() where id != nil { (conduits + index).deinitialize(count: 1) }
        conduits.deallocate()
    }

    /// Returns whether a connection is open.
    func contains(_ id: FlowID) -> Bool { id.index < ids.count && ids[id.index] == id }

    /// The conduit of an open connection, in place.
    ///
    /// The accessors return addresses. A coroutine (`_read`) would copy the bits of the conduit to memory of its own, which
    /// the optimiser of Swift 6.3 uses after the coroutine has freed it.
    subscript(id: FlowID) -> Conduit {
        unsafeAddress { UnsafePointer(address(of: id)) }
        unsafeMutableAddress { address(of: id) }
    }

    /// A stream of an open connection, in place.
    subscript(id: FlowID, direction: Direction) -> Conduit.Stream {
        unsafeAddress { UnsafePointer(address(of: id, direction)) }
        unsafeMutableAddress { address(of: id, direction) }
    }

    private func address(of id: FlowID) -> UnsafeMutablePointer<Conduit> {
        precondition(contains(id), "the connection has ended")
        return conduits + id.index
    }

    private func address(of id: FlowID, _ direction: Direction) -> UnsafeMutablePointer<Conduit.Stream> {
        let offset =
            direction == .up ? MemoryLayout<Conduit>.offset(of: \.up) : MemoryLayout<Conduit>.offset(of: \.down)
        return UnsafeMutableRawPointer(address(of: id)).advanced(by: offset!)
            .assumingMemoryBound(to: Conduit.Stream.self)
    }

    /// Adds the conduit of a new connection.
    mutating func insert(_ conduit: consuming Conduit, _ id: FlowID) {
        while ids.count <= id.index { ids.append(nil) }
        precondition(ids[id.index] == nil, "the slot of an open connection is used again")
        if ids.count > memoryCapacity { grow() }
        (conduits + id.index).initialize(to: conduit)
        ids[id.index] = id
    }

    private mutating func grow() {
        let old = conduits
        memoryCapacity = max(2 * memoryCapacity, ids.count)
        conduits = .allocate(capacity: memoryCapacity)
        for (index, id) in ids.enumerated() where id != nil {
            (conduits + index).moveInitialize(from: old + index, count: 1)
        }
        old.deallocate()
    }

    /// Removes the conduit of a connection that ends.
    mutating func remove(_ id: FlowID) {
        precondition(contains(id), "the connection has ended")
        ids[id.index] = nil
        (conduits + id.index).deinitialize(count: 1)
    }

    /// The number of slots; some of them may be free.
    var slotCount: Int { ids.count }

    /// Returns the identifier of the connection in a slot; `nil` if the slot is free.
    func id(at index: Int) -> FlowID? { ids[index] }

    /// The open connections.
    var openConnections: [FlowID] { ids.compactMap { $0 } }
}
