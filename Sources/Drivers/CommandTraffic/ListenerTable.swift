/// The listening TCP sockets of a network namespace, from the text of /proc/net/tcp and /proc/net/tcp6.
enum ListenerTable {
    /// The state of a listening socket in the text.
    private static let listening = "0A"

    /// Returns whether a line is that of a listening socket. Those come before all others.
    static func isListener(_ line: some StringProtocol) -> Bool {
        let fields = line.split(separator: " ", omittingEmptySubsequences: true)
        return fields.count > 3 && fields[3] == listening
    }

    /// Returns whether a listening socket of a line accepts connections to an address.
    ///
    /// A socket on the unspecified IPv6 address also counts for IPv4: the text does not show the rare ones that do not
    /// accept it.
    static func accepts(_ line: some StringProtocol, _ address: ConnectAddress) -> Bool {
        guard isListener(line) else { return false }
        let local = line.split(separator: " ", omittingEmptySubsequences: true)[1].split(separator: ":")
        guard local.count == 2, Int(local[1], radix: 16) == address.port, let bytes = bytes(String(local[0])) else {
            return false
        }
        if bytes.allSatisfy({ $0 == 0 }) { return bytes.count == 16 || address.bytes.count == 4 }
        let wanted =
            address.isUnspecified
            ? (address.bytes.count == 4 ? [127, 0, 0, 1] : [UInt8](repeating: 0, count: 15) + [1]) : address.bytes
        return bytes == wanted || bytes == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] + wanted
    }

    /// Returns the bytes of an address in network order; the text has them in words of the machine's order.
    private static func bytes(_ text: String) -> [UInt8]? {
        guard text.count == 8 || text.count == 32 else { return nil }
        let digits = Array(text)
        var bytes: [UInt8] = []
        for word in stride(from: 0, to: digits.count, by: 8) {
            guard let value = UInt32(String(digits[word..<word + 8]), radix: 16) else { return nil }
            withUnsafeBytes(of: value) { bytes += $0 }
        }
        return bytes
    }
}
