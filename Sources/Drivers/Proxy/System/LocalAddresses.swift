internal import NIOCore

/// The network addresses of this machine.
package enum LocalAddresses {
    /// Returns whether a host is `localhost` or an address of the loopback interface. A name such as `127.example.org` is not.
    package static func isLoopback(_ host: String) -> Bool {
        if host == "localhost" { return true }
        switch try? SocketAddress(ipAddress: host, port: 0) {
        case .v4: return host.hasPrefix("127.")
        case .v6: return host == "::1"
        default: return false
        }
    }

    /// Returns the addresses under which other devices of the network reach a listener on `host`.
    package static func reachable(through host: String) -> [String] {
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
