/// Connections detached from a relay's port.
package struct RelayDetachment: Sendable {
    /// The most recently active first.
    package var connections: [DetachedConnection] = []
    /// The port's traffic, if this call removed the port; otherwise more connections remain.
    package var finalTraffic: RelayedTraffic?
}
