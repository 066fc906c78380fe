/// The programs of Toxiproxy's that this one stands in for when it is called by their names.
enum ToxiproxyName {
    /// `toxiproxy-server`, and `toxiproxy` as in Toxiproxy's container image.
    case server
    /// `toxiproxy-cli`.
    case client

    /// The one by whose name the program was called.
    static let used: ToxiproxyName? =
        switch CommandLine.arguments.first?.split(separator: "/").last {
        case "toxiproxy", "toxiproxy-server": .server
        case "toxiproxy-cli": .client
        default: nil
        }
}
