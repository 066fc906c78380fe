/// The destinations that the proxy does not connect for any client: addresses and names of the metadata services of
/// clouds, link-local, multicast, broadcast and unspecified addresses.
///
/// Metadata services give credentials to every program of a machine; a proxy that others may use must not reach them.
/// Loopback and private addresses are allowed: servers under test have them.
public struct DestinationPolicy: Hashable, Sendable {
    /// The destinations that are allowed although they are of such a kind. A lone `*` allows all.
    public var exceptions: [HostPattern]

    /// Creates the policy with exceptions.
    public init(exceptions: [HostPattern] = []) { self.exceptions = exceptions }

    private static let networks: [(address: IPAddress, prefixLength: Int)] = [
        ("0.0.0.0", 8), ("169.254.0.0", 16), ("224.0.0.0", 4), ("255.255.255.255", 32),
        ("::", 128), ("fe80::", 10), ("ff00::", 8),
        // Metadata: Azure's agent, Alibaba, Oracle; AWS and Google over IPv6. The others are at 169.254.169.254.
        ("168.63.129.16", 32), ("100.100.100.200", 32), ("192.0.0.192", 32),
        ("fd00:ec2::254", 128), ("fd20:ce::254", 128),
    ].compactMap { text, length in IPAddress(text).map { ($0, length) } }

    private static let names: Set<String> = [
        "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
        "metadata.azure.internal", "metadata.tencentyun.com",
    ]

    /// Returns whether a destination may be looked up and connected. Before the look-up.
    public func isAllowed(_ destination: Destination) -> Bool {
        (1...65535).contains(destination.port) && permitsHost(of: destination)
    }

    /// Returns whether the host of a destination may be looked up, whatever its port.
    public func permitsHost(of destination: Destination) -> Bool {
        if let address = destination.address { return isAllowed(address, of: destination) }
        return !Self.names.contains(destination.host) || exceptions.contains { $0.matches(destination) }
    }

    /// Returns whether an address of a destination may be connected. After the look-up, for each address; a name must
    /// not lead to an address that the proxy would refuse.
    public func isAllowed(_ address: IPAddress, of destination: Destination) -> Bool {
        let isRefused = Self.networks.contains { network in
            [address, address.embeddedIPv4].contains {
                $0?.isIn(network.address, prefixLength: network.prefixLength) == true
            }
        }
        guard isRefused else { return true }
        let numeric = Destination(host: address.description, port: destination.port)
        return exceptions.contains { $0.matches(destination) || $0.matches(numeric) }
    }
}
