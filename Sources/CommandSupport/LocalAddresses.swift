internal import NIOCore

/// The network addresses of this machine.
public enum LocalAddresses {
    /// Returns whether a host name or address is that of the loopback interface.
    public static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }

    /// Returns the addresses under which other devices of the network reach a listener on `host`.
    public static func reachable(through host: String) -> [String] {
        guard host == "0.0.0.0" || host == "::" else { return [host] }
        let devices = (try? System.enumerateDevices()) ?? []
        return devices.compactMap { device in
            guard case .v4 = device.address, let address = device.address?.ipAddress, !isLoopback(address) else {
                return nil
            }
            return address
        }
    }
}
