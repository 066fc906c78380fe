internal import NIOCore

/// The addresses of this machine.
enum LocalAddresses {
    /// Whether a host is this machine only.
    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }

    /// What a phone on the same network would type to reach a listener on `host`.
    static func reachable(through host: String) -> [String] {
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
