/// A program of Toxiproxy's as which this binary runs when it is invoked by that name.
enum ToxiproxyProgram {
    /// `toxiproxy-server`, or `toxiproxy` as in Toxiproxy's container image.
    case server
    /// `toxiproxy-cli`.
    case client

    /// The program whose name this process was invoked by; `nil` under any other name.
    static let invoked: ToxiproxyProgram? =
        switch CommandLine.arguments.first?.split(separator: "/").last {
        case "toxiproxy", "toxiproxy-server": .server
        case "toxiproxy-cli": .client
        default: nil
        }
}
