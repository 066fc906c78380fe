internal import ControlAPI

/// The flags of `toxiproxy-server`, in Go's style.
enum ToxiproxyServerFlags {
    private static let valueFlags: Set<String> = ["host", "port", "config", "seed"]
    private static let switches: Set<String> = ["proxy-metrics", "runtime-metrics", "version", "help", "h"]
    /// Ours, which a container may need beside them.
    private static let ours: Set<String> = ["token", "allow-host"]
    private static let ourSwitches: Set<String> = ["no-token"]

    /// What is to be done with a command line.
    enum Meaning: Equatable {
        /// Run the server with these arguments.
        case serve([String])
        /// Print this and end with the status.
        case say(String, status: Int32)
    }

    /// Reads a command line: one dash or two, a value beside or after `=`, no matter what follows the first word that is no flag.
    static func meaning(of arguments: [String]) -> Meaning {
        var result = ["server"]
        var rest = arguments[...]
        while let word = rest.popFirst(), word.hasPrefix("-"), word != "-", word != "--" {
            let text = word.drop { $0 == "-" }
            let name = String(text.prefix { $0 != "=" })
            let inline = text.contains("=") ? String(text.dropFirst(name.count + 1)) : nil
            if valueFlags.contains(name) || ours.contains(name) {
                guard let value = inline ?? rest.popFirst() else {
                    return .say("flag needs an argument: -\(name)\n\(usage)", status: 2)
                }
                // Its seeds may be negative.
                let isNegative = name == "seed" && value.hasPrefix("-")
                let seed = isNegative ? Int64(value).map { "\(UInt64(bitPattern: $0))" } : nil
                result.append("--\(name)=\(seed ?? value)")
            } else if switches.contains(name) || ourSwitches.contains(name) {
                guard let isOn = GoText.truth(inline ?? "true") else {
                    let value = GoText.quoted(inline ?? "")
                    return .say("invalid boolean value \(value) for -\(name): parse error\n\(usage)", status: 2)
                }
                if !isOn { continue }
                switch name {
                case "version": return .say("toxiproxy-server version \(API.toxiproxyVersion)\n", status: 0)
                case "help", "h": return .say(usage, status: 0)
                default: result.append("--\(name)")
                }
            } else {
                return .say("flag provided but not defined: -\(name)\n\(usage)", status: 2)
            }
        }
        return .serve(result)
    }

    private static let usage = """
        Usage of toxiproxy-server (slowlane \(SlowlaneVersion.current)):
          -host string         address to listen on (default "localhost")
          -port string         port to listen on (default "8474")
          -config string       JSON file with proxies to create at the start
          -seed int            random seed of the toxics (default: another each time)
          -proxy-metrics       show the proxies' counters under /metrics
          -runtime-metrics     show the process's figures under /metrics
          -token string        callers must send it as 'Authorization: Bearer'
          -no-token            listen for other machines without a token
          -allow-host string   name under which callers reach this server
          -version             print the version and end

        """
}
