/// A pattern of destinations: `api.test`, `*.cdn.test`, `*`, an address or a network, each with an optional port.
///
/// Texts are ASCII in lower case, so that equality is that of the bytes.
public struct HostPattern: Hashable, Sendable, CustomStringConvertible {
    /// The hosts of a pattern.
    public enum Hosts: Hashable, Sendable {
        /// Every host.
        case any
        /// The host of this name.
        case name(String)
        /// The hosts below this name, without the name itself.
        case subdomains(of: String)
        /// The addresses whose first bits are those of an address. A name that has such an address does not match.
        case network(IPAddress, prefixLength: Int)
    }

    /// The hosts.
    public var hosts: Hosts
    /// The port; `nil` for every port.
    public var port: Int?

    /// Creates the pattern of hosts.
    public init(_ hosts: Hosts, port: Int? = nil) {
        self.hosts = hosts
        self.port = port
    }

    /// Reads a pattern.
    public init(parsing text: String) throws(HostRuleError) {
        let bytes = Array(text.utf8)
        let colon = UInt8(ascii: ":")
        var host = bytes[...]
        var digits: ArraySlice<UInt8>?
        // The last colon is that of the port, unless it is one of an IPv6 address.
        let isVersion6 = bytes.first != UInt8(ascii: "[") && bytes.count { $0 == colon } > 1
        let end = bytes.lastIndex(of: UInt8(ascii: "]")) ?? 0
        if !isVersion6, let last = bytes.lastIndex(of: colon), last >= end {
            (host, digits) = (bytes[..<last], bytes[(last + 1)...])
        }
        if text.contains("://") {
            throw HostRuleError(text: text, column: 1, problem: "a URL; write the host alone, for example api.test")
        }
        do throws(HostSyntaxError) {
            hosts = try Self.hosts(host)
        } catch {
            throw HostRuleError(text: text, column: 1, problem: error.problem)
        }
        guard let digits else { return }
        do throws(HostSyntaxError) {
            port = try HostSyntax.port(digits)
        } catch {
            throw HostRuleError(text: text, column: digits.startIndex + 1, problem: error.problem)
        }
    }

    /// Reads an address or a network, such as `192.168.1.0/24`.
    public init(network text: String) throws(HostRuleError) {
        try self.init(parsing: text)
        guard case .network = hosts, port == nil else {
            throw HostRuleError(
                text: text, column: 1, problem: "not an address or a network; write, for example, 192.168.1.0/24")
        }
    }

    private static func hosts(_ text: ArraySlice<UInt8>) throws(HostSyntaxError) -> Hosts {
        let star = UInt8(ascii: "*")
        if Array(text) == [star] { return .any }
        if let slash = text.firstIndex(of: UInt8(ascii: "/")) {
            guard let address = IPAddress(try address(text[..<slash])) else {
                throw HostSyntaxError(problem: "the text before '/' is not an address; write, for example, 10.0.0.0/8")
            }
            let digits = text[(slash + 1)...]
            let bits = 8 * address.bytes.count
            guard (1...3).contains(digits.count), digits.allSatisfy({ (48...57).contains($0) }),
                let length = UInt8(String(decoding: digits, as: UTF8.self)),
                length <= bits
            else { throw HostSyntaxError(problem: "the length of the prefix is not a number from 0 to \(bits)") }
            return .network(address.masked(prefixLength: Int(length)), prefixLength: Int(length))
        }
        if text.first == star, text.dropFirst().first == UInt8(ascii: ".") {
            let name = try HostSyntax.host(text.dropFirst(2))
            guard IPAddress(name) == nil else {
                throw HostSyntaxError(problem: "an address has no subdomains; write a network, for example 10.0.0.0/8")
            }
            return .subdomains(of: name)
        }
        let rest = String(decoding: text.dropFirst(), as: UTF8.self)
        if text.first == UInt8(ascii: ".") {
            throw HostSyntaxError(problem: "a name cannot begin with a dot; write *.\(rest) for its subdomains")
        }
        if text.contains(star) {
            throw HostSyntaxError(problem: "'*' stands only for all hosts or at the start, as in *.cdn.test")
        }
        let host = try address(text)
        return IPAddress(host).map { .network($0, prefixLength: 8 * $0.bytes.count) } ?? .name(host)
    }

    /// Returns a host in its normal form; an IPv6 address may have brackets.
    private static func address(_ text: ArraySlice<UInt8>) throws(HostSyntaxError) -> String {
        text.first == UInt8(ascii: "[") ? try HostSyntax.split(text).host : try HostSyntax.host(text)
    }

    /// Returns whether a destination matches.
    public func matches(_ destination: Destination) -> Bool {
        if let port, port != destination.port { return false }
        switch hosts {
        case .any: return true
        case .name(let name): return destination.host == name
        case .subdomains(let name):
            let suffix = ("." + name).utf8
            return destination.host.utf8.suffix(suffix.count).elementsEqual(suffix)
        case .network(let network, let prefixLength):
            return destination.address?.isIn(network, prefixLength: prefixLength) == true
        }
    }

    /// The order of patterns that match the same destination: a host before the subdomains of a longer name, of a
    /// shorter name, all hosts; of the same hosts, those with a port first.
    var specificity: (hosts: Int, length: Int, port: Int) {
        let port = port == nil ? 0 : 1
        return switch hosts {
        case .any: (0, 0, port)
        case .subdomains(let name): (1, name.utf8.count, port)
        case .network(_, let prefixLength): (1, prefixLength, port)
        case .name: (2, 0, port)
        }
    }

    /// The text of which the pattern can be read.
    public var description: String {
        let host: String
        switch hosts {
        case .any: host = "*"
        case .name(let name): host = name
        case .subdomains(let name): host = "*." + name
        case .network(let address, let length):
            let text = address.bytes.count == 16 ? "[\(address)]" : address.description
            host = length == 8 * address.bytes.count ? text : "\(text)/\(length)"
        }
        return port.map { "\(host):\($0)" } ?? host
    }
}
