internal import CommandSupport
internal import ControlAPI

/// The command line of `toxiproxy-server`, translated to that of `slowlane server`.
public enum ToxiproxyServerArguments {
    private static let valueFlags: Set<String> = ["host", "port", "config", "seed"]
    private static let switches: Set<String> = ["proxy-metrics", "runtime-metrics", "version", "help", "h"]
    /// Flags of `slowlane server` that containers need too.
    private static let slowlaneValueFlags: Set<String> = ["token", "allow-host"]
    private static let slowlaneSwitches: Set<String> = ["no-token"]

    /// The result of parsing.
    public enum Action: Equatable, Sendable {
        /// Run `slowlane` with these arguments.
        case run([String])
        /// Print a text and exit.
        case exit(String, status: Int32)
    }

    /// Parses a command line as Go's `flag` package does: one dash or two, values after a space or `=`. The first
    /// argument that is not a flag ends the parsing, and the rest is ignored.
    public static func parse(_ arguments: [String]) -> Action {
        var result = ["server"]
        var rest = arguments[...]
        while let word = rest.popFirst(), word.hasPrefix("-"), word != "-", word != "--" {
            let text = word.drop { $0 == "-" }
            let name = String(text.prefix { $0 != "=" })
            let inline = text.contains("=") ? String(text.dropFirst(name.count + 1)) : nil
            if valueFlags.contains(name) || slowlaneValueFlags.contains(name) {
                guard let value = inline ?? rest.popFirst() else {
                    return .exit("flag needs an argument: -\(name)\n\(usage)", status: 2)
                }
                // Toxiproxy's seeds are signed.
                let isNegative = name == "seed" && value.hasPrefix("-")
                let seed = isNegative ? Int64(value).map { "\(UInt64(bitPattern: $0))" } : nil
                result.append("--\(name)=\(seed ?? value)")
            } else if switches.contains(name) || slowlaneSwitches.contains(name) {
                guard let isOn = GoText.bool(inline ?? "true") else {
                    let value = GoText.quoted(inline ?? "")
                    return .exit("invalid boolean value \(value) for -\(name): parse error\n\(usage)", status: 2)
                }
                if !isOn { continue }
                switch name {
                case "version": return .exit("toxiproxy-server version \(API.toxiproxyVersion)\n", status: 0)
                case "help", "h": return .exit(usage, status: 0)
                default: result.append("--\(name)")
                }
            } else {
                return .exit("flag provided but not defined: -\(name)\n\(usage)", status: 2)
            }
        }
        return .run(result)
    }

    private static let usage = """
        Usage of toxiproxy-server (slowlane \(SlowlaneVersion.current)):
          -host string         address to listen on (default "localhost")
          -port string         port to listen on (default "8474")
          -config string       JSON file with proxies to create at startup
          -seed int            random seed (default: random)
          -proxy-metrics       include proxy metrics in /metrics
          -runtime-metrics     include process metrics in /metrics
          -token string        token that requests must send as 'Authorization: Bearer'
          -no-token            accept requests from other machines without a token
          -allow-host string   also accept this name in the Host header
          -version             print the version and exit

        """
}
