internal import ArgumentParser
internal import CommandSupport
internal import ControlAPI
internal import LinkModel
internal import Wire

/// `slowlane link`.
struct LinkCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "link", abstract: "Change or show the network conditions of a proxy.",
        discussion: """
            Examples:
              slowlane link api edge
              slowlane link api --delay 200ms --rate 1mbit
              slowlane link api 3g --loss-up 5%
              slowlane link api --timeline '0s: 3g, 20s: 100-loss, 50s: 3g'
              slowlane link api --netem-down 'delay 100ms loss 2%'
              slowlane link api --clear
              slowlane link api                # show the conditions

            New conditions have taken effect when the command ends.
            """)

    @Argument(help: "Name of the proxy.") var name: String
    @Argument(
        help: "Built-in profile ('slowlane profiles' lists them).", completion: NameCompletion.builtInProfile)
    var profile: String?
    @Option(
        help: ArgumentHelp(
            "Built-in timeline, or times with profiles ('0s: 3g, 20s: 100-loss'), instead of a profile.",
            valueName: "name|times"),
        completion: NameCompletion.builtInTimeline)
    var timeline: String?
    @OptionGroup var timelineStart: TimelineStartOption
    @Option(
        help: ArgumentHelp(
            "Conditions from server to client in the syntax of 'tc ... netem', instead of a profile. "
                + "'kbit' counts bits; 'bps', 'kbps', 'mbps' count bytes.", valueName: "expression"))
    var netemDown: String?
    @Option(
        help: ArgumentHelp(
            "The same from client to server. A direction without an expression has no conditions.",
            valueName: "expression"))
    var netemUp: String?
    @OptionGroup(title: "Figures (alone, or in place of a profile's)") var figureOptions: FigureOptions
    @Flag(help: "Remove all link conditions.") var clear = false
    @OptionGroup(title: "Server") var server: ServerOptions
    var purpose: String { "change or show the link of proxy '\(name)'" }

    func validate() throws {
        try timelineStart.check(timeline)
        let given = [
            profile != nil || figureOptions.isGiven, timeline != nil, netemDown != nil || netemUp != nil, clear,
        ]
        if given.count(where: { $0 }) > 1 {
            throw ValidationError(
                "give one of a profile (or figures such as --delay), --timeline, --netem-down and --netem-up, or --clear"
            )
        }
    }

    func run(_ client: APIClient, _ console: Console) async throws {
        let path = APIClient.path("slowlane", "v1", "proxies", name, "link")
        let link: JSONValue
        if clear {
            link = try await client.call("DELETE", path)
        } else if profile != nil || figureOptions.isGiven {
            link = try await client.call("PUT", path, .object(try figureOptions.link(profile: profile)))
        } else if let timeline {
            var body: JSONObject = ["timeline": .text(timeline)]
            if let start = timelineStart.timelineStart { body["start"] = .text(start.description) }
            link = try await client.call("PUT", path, .object(body))
        } else if netemDown != nil || netemUp != nil {
            let both: JSONObject = ["down": .text(netemDown ?? ""), "up": .text(netemUp ?? "")]
            link = try await client.call("PUT", path, .object(["netem": .object(both)]))
        } else {
            link = try await client.call("GET", path)
        }
        if server.json { return console.print(link.json) }
        console.print("\(name): \(ProxyText.link(link))")
    }
}
