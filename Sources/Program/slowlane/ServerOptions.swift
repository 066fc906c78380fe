internal import ArgumentParser
internal import CommandSupport
internal import ControlAPI
internal import Foundation

/// The options of commands that call a running server.
struct ServerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "URL of the server. (default: $SLOWLANE_URL, $TOXIPROXY_URL or http://localhost:8474)", valueName: "url"))
    var host: String?

    @Option(help: ArgumentHelp("Token that the server requires. (default: $SLOWLANE_TOKEN)", valueName: "token"))
    var token: String?

    @Flag(help: "Print JSON.")
    var json = false

    private static let hostDefault = "http://localhost:8474"

    /// Returns the client; it prints the server's warnings.
    func client(_ console: Console) throws -> APIClient {
        let environment = ProcessInfo.processInfo.environment
        let url = host ?? environment["SLOWLANE_URL"] ?? environment["TOXIPROXY_URL"] ?? Self.hostDefault
        var client = APIClient(
            url: url, token: token ?? environment["SLOWLANE_TOKEN"], userAgent: "slowlane/\(SlowlaneVersion.current)")
        client?.onWarning = { console.print("warning: \(TextTable.singleLine($0))", to: .progress) }
        guard let client else {
            throw ValidationError("--host '\(url)' must be the URL of a server, such as \(Self.hostDefault)")
        }
        return client
    }
}
