/// A program of Toxiproxy that this binary replaces when invoked by its name.
public enum ToxiproxyProgram: Sendable {
    /// `toxiproxy-server`, or `toxiproxy` as in Toxiproxy's container image.
    case server
    /// `toxiproxy-cli`.
    case client

    /// The program by whose name this process was invoked; `nil` for any other name.
    public static let invoked: ToxiproxyProgram? =
        switch CommandLine.arguments.first?.split(separator: "/").last {
        case "toxiproxy", "toxiproxy-server": .server
        case "toxiproxy-cli": .client
        default: nil
        }
}
