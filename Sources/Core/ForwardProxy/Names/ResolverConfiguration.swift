package import Determinism

/// The configuration of the system's resolver, as in resolv.conf(5).
package struct ResolverConfiguration: Hashable, Sendable {
    /// A name server.
    package struct Server: Hashable, Sendable {
        package var address: IPAddress
        /// The UDP port, 1 to 65535.
        package var port: Int

        package init(address: IPAddress, port: Int = 53) {
            self.address = address
            self.port = port
        }
    }

    /// The name servers, in the order in which they are asked; none if only the system's resolver can look names up.
    package var servers: [Server] = []
    /// The domains that are appended to names.
    package var searchList: [String] = []
    /// The number of dots from which on a name is asked as it is before domains are appended (`ndots`), 0 to 15.
    package var dotsMin = 1
    /// The time after which a query without a response is repeated, 1 to 30 s.
    package var timeout = Nanoseconds.seconds(5)
    /// How often each server is asked, 1 to 5.
    package var attempts = 2

    /// glibc's limits (MAXNS, MAXDNSRCH).
    private static let (serversMax, domainsMax) = (3, 6)

    /// Creates a configuration without name servers.
    package init() {}

    /// Reads the text of resolv.conf. Lines that are not understood are ignored, and so are addresses with a zone.
    package init(_ text: [UInt8]) {
        for line in TextFields.lines(text) {
            // A comment begins at the start of a line.
            guard let first = line.first, !first.hasPrefix("#"), !first.hasPrefix(";") else { continue }
            switch first {
            case "nameserver":
                if servers.count < Self.serversMax, line.count > 1, let address = IPAddress(line[1]) {
                    servers.append(Server(address: address))
                }
            case "search", "domain":
                searchList = line.dropFirst().prefix(first == "domain" ? 1 : Self.domainsMax).map {
                    $0.hasSuffix(".") ? String($0.dropLast()) : $0
                }.filter { DNSName($0) != nil }
            case "options": for option in line.dropFirst() { read(option: option) }
            default: break
            }
        }
    }

    private mutating func read(option: String) {
        let parts = option.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, let value = Int(parts[1]), value >= 0 else { return }
        switch parts[0] {
        case "ndots": dotsMin = min(value, 15)
        case "timeout": timeout = .seconds(Int64(min(max(value, 1), 30)))
        case "attempts": attempts = min(max(value, 1), 5)
        default: break
        }
    }

    /// A name that is asked, and whether by the system's resolver in place of the name servers.
    struct Step: Hashable {
        let name: String
        let usesSystem: Bool
    }

    /// Returns the names that are asked one after the other until one has addresses.
    ///
    /// Names below `localhost` and names of mDNS (`printer.local`) are for the system's resolver. So are names without a
    /// dot that the name servers do not know: the machine's own name, and those of LLMNR and NetBIOS.
    func steps(for host: String) -> [Step] {
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        let system = Step(name: host, usesSystem: true)
        if servers.isEmpty || labels.last == "localhost" || (labels.count == 2 && labels[1] == "local") {
            return [system]
        }
        let extended = searchList.map { "\(host).\($0)" }
        let names = labels.count - 1 >= dotsMin ? [host] + extended : extended + [host]
        return names.filter { DNSName($0) != nil }.map { Step(name: $0, usesSystem: false) }
            + (labels.count == 1 ? [system] : [])
    }
}

/// The addresses of names in the hosts file (hosts(5)).
package struct HostsFile: Hashable, Sendable {
    /// The addresses by the bytes of the name in lower case, in the file's order.
    private var addresses: [[UInt8]: [IPAddress]] = [:]

    /// Reads the text of the file. Lines that are not understood are ignored, and so are addresses with a zone.
    package init(_ text: [UInt8]) {
        for line in TextFields.lines(text) {
            let fields = line.prefix { !$0.hasPrefix("#") }
            guard let first = fields.first, let address = IPAddress(first) else { continue }
            for field in fields.dropFirst() {
                let (name, hasComment) = field.firstIndex(of: "#").map { (field[..<$0], true) } ?? (field[...], false)
                addresses[Array(name.lowercased().utf8), default: []].append(address)
                if hasComment { break }
            }
        }
    }

    /// Returns the addresses of a host in its normal form; none if the file does not name it.
    package func addresses(of host: String) -> [IPAddress] { addresses[Array(host.utf8)] ?? [] }
}

/// Lines of words between spaces and tabs.
private enum TextFields {
    static func lines(_ text: [UInt8]) -> [[String]] {
        text.split(separator: UInt8(ascii: "\n")).map { line in
            line.split { [UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r")].contains($0) }
                .map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
