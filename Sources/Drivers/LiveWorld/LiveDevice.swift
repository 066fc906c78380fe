/// A device in real time: executes the director's orders for it, one after the other.
protocol LiveDevice: Sendable {
    var name: String { get }

    /// Executes an order.
    func execute(_ order: LiveRunWorld.Order) async

    /// Ends the client and the proxy.
    func stop() async
}
