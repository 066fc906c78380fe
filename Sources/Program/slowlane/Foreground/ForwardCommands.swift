internal import CommandSupport
internal import ConfigFiles
internal import ForwardProxy
internal import LinkModel
internal import Proxy

/// The commands of a forward proxy on standard input: rules by host, and the traffic of hosts.
struct ForwardCommands {
    private let proxy: Proxy
    private var settings: ForwardSettings

    init(_ proxy: Proxy, _ settings: ForwardSettings) {
        self.proxy = proxy
        self.settings = settings
    }

    /// The commands with their arguments.
    static let commands = ["to PATTERN=CONDITIONS", "to remove PATTERN", "rules", "hosts"]

    /// The most destinations in the reply to `hosts`.
    private static let hostsShownMax = 20

    /// Adds, replaces or removes a rule, for connections that are opened from now on.
    mutating func change(_ text: String) async -> String {
        var changed = settings
        let words = text.split(maxSplits: 1, whereSeparator: \.isWhitespace).map(String.init)
        do {
            if words.first == "remove", words.count == 2 {
                let pattern = try HostPattern(parsing: words[1])
                changed.rules.rules.removeAll { $0.pattern == pattern }
                guard changed.rules.rules.count < settings.rules.rules.count else {
                    return "error no rule has the pattern '\(pattern)'; 'rules' lists them"
                }
            } else {
                let rule = try HostRules.rule(parsing: text)
                if case .conditions(let name) = rule.treatment {
                    changed.conditions[name] = try ProfileCatalogue.profile(name).conditions
                }
                changed.rules.rules.removeAll { $0.pattern == rule.pattern }
                try changed.rules.add(rule)
            }
        } catch {
            return "error \("\(error)".split(separator: "\n").joined(separator: " | "))"
        }
        settings = changed
        await proxy.setForward(settings)
        return "ok \(rulesText)"
    }

    /// The rules.
    var list: String { "ok \(rulesText)" }

    private var rulesText: String {
        let rules = settings.rules.rules
        return rules.isEmpty ? "no rules" : "rules: " + rules.map { "\($0)" }.joined(separator: "; ")
    }

    /// The destinations with their traffic.
    func hosts() async -> String {
        let hosts = await proxy.hostTraffic()
        if hosts.isEmpty { return "ok no connections so far" }
        let texts = hosts.prefix(Self.hostsShownMax).map { host in
            let failed = host.connectionsFailed > 0 ? ", \(host.connectionsFailed) failed" : ""
            return "\(host.destination.map { "\($0)" } ?? "other hosts") "
                + "\(TextTable.count(host.connections, "connection"))\(failed), "
                + "\(Units.bytes(host.bytes.down)) down, \(Units.bytes(host.bytes.up)) up"
        }
        let rest = hosts.count - texts.count
        return "ok " + texts.joined(separator: "; ") + (rest > 0 ? "; and \(rest) more" : "")
    }
}
