internal import CommandSupport
internal import ConfigFiles
internal import ForwardProxy
internal import LinkModel
internal import Proxy

/// The commands of a forward proxy on standard input: rules by host, and the traffic of hosts.
struct ForwardCommands {
    private let proxy: Proxy

    init(_ proxy: Proxy) { self.proxy = proxy }

    /// The commands with their arguments.
    static let commands = ["to PATTERN=CONDITIONS", "to remove PATTERN", "rules", "hosts"]

    /// The most destinations in the reply to `hosts`.
    private static let hostsShownMax = 20

    /// Adds, replaces or removes a rule, for connections that are opened from now on.
    func change(_ text: String) async -> String {
        let words = text.split(maxSplits: 1, whereSeparator: \.isWhitespace).map(String.init)
        do {
            if words.first == "remove", words.count == 2 {
                let pattern = try HostPattern(parsing: words[1])
                try await proxy.changeForward { settings throws(NoRuleError) in
                    guard settings.removeRule(of: pattern) else { throw NoRuleError(pattern: pattern) }
                }
            } else {
                let rule = try HostRules.rule(parsing: text)
                var conditions: Conditions?
                if case .conditions(let name) = rule.treatment {
                    conditions = try ProfileCatalogue.profile(name).conditions
                }
                await proxy.changeForward { [conditions] in $0.set(rule, conditions: conditions) }
            }
        } catch {
            return "error \("\(error)".split(separator: "\n").joined(separator: " | "))"
        }
        return await list()
    }

    private struct NoRuleError: Error, CustomStringConvertible {
        let pattern: HostPattern
        var description: String { "no rule has the pattern '\(pattern)'; 'rules' lists them" }
    }

    /// The rules.
    func list() async -> String {
        let rules = await proxy.forwardSettings()?.rules.rules ?? []
        return rules.isEmpty ? "ok no rules" : "ok rules: " + rules.map { "\($0)" }.joined(separator: "; ")
    }

    /// The destinations with their traffic.
    func hosts() async -> String {
        let hosts = await proxy.hostTraffic()
        if hosts.isEmpty { return "ok no connections so far" }
        let texts = hosts.prefix(Self.hostsShownMax).map { host in
            let failed = host.connectionsFailed > 0 ? ", \(host.connectionsFailed) failed" : ""
            // The name of a destination that the client has given by its address.
            let name = host.destination?.isNumericAddress == true ? host.serverName.map { " (\($0))" } ?? "" : ""
            return "\(host.destination.map { "\($0)" } ?? "other hosts")\(name) "
                + "\(TextTable.count(host.connections, "connection"))\(failed), "
                + "\(Units.bytes(host.bytes.down)) down, \(Units.bytes(host.bytes.up)) up"
        }
        let rest = hosts.count - texts.count
        return "ok " + texts.joined(separator: "; ") + (rest > 0 ? "; and \(rest) more" : "")
    }
}
