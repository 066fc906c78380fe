internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import LinkModel
internal import TCPModel

/// The options that describe a link: a profile, netem expressions or a timeline; TCP stacks and the random seed.
struct LinkOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A built-in profile ('slowlane profiles' lists them) or the path of a profile file.", valueName: "name|file"
        )
    )
    var profile: String?

    @Option(
        help: ArgumentHelp(
            "Conditions from server to client in the syntax of 'tc ... netem', instead of a profile; needs --netem-up. "
                + "'kbit' counts bits; 'bps', 'kbps', 'mbps' count bytes.", valueName: "expression"))
    var netemDown: String?

    @Option(
        help: ArgumentHelp(
            "The same from client to server; needs --netem-down. '' means no conditions in this direction.",
            valueName: "expression"))
    var netemUp: String?

    @Option(
        help: ArgumentHelp(
            "A built-in timeline, the path of a timeline file, or times with profiles ('0s: 3g, 20s: 100-loss'), "
                + "instead of a profile.",
            valueName: "name|file|times"))
    var timeline: String?

    @Option(help: ArgumentHelp("TCP stack to model for clients: linux, apple or rfc.", valueName: "stack"))
    var clientStack = "linux"

    @Option(help: ArgumentHelp("TCP stack to model for the server: linux, apple or rfc.", valueName: "stack"))
    var serverStack = "linux"

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Random seed; runs with the same seed lose the same packets.", valueName: "number"),
        transform: SeedArgument.parse)
    var seed: UInt64 = 1

    /// The number of given options among profile, timeline and netem expressions, which exclude each other.
    var givenCount: Int { [profile, netemDown, timeline].count(where: { $0 != nil }) }

    var client: StackPreset { StackPreset.named[clientStack] ?? .linux }
    var server: StackPreset { StackPreset.named[serverStack] ?? .linux }

    func validate() throws {
        guard (netemDown == nil) == (netemUp == nil) else {
            throw ValidationError("give both --netem-down and --netem-up; '' means no conditions in that direction")
        }
        guard givenCount <= 1 else {
            throw ValidationError("give one of --profile, --timeline, or --netem-down with --netem-up")
        }
        for (option, name) in [("--client-stack", clientStack), ("--server-stack", serverStack)] {
            guard StackPreset.named[name] != nil else {
                let names = StackPreset.named.keys.sorted()
                throw ValidationError(
                    "\(option) '\(name.prefix(40))' must be \(names.dropLast().joined(separator: ", ")) or \(names.last ?? "")"
                )
            }
        }
    }

    /// Returns the conditions; prints an error and throws an exit status if the options are invalid.
    func link(_ console: Console) throws -> LinkSource {
        if let timeline { return .timeline(try TimelineFile.forArgument(timeline, console)) }
        if let netemDown, let netemUp {
            do {
                return .constant(
                    Conditions(up: try NetemExpression.parse(netemUp), down: try NetemExpression.parse(netemDown)),
                    name: "netem")
            } catch {
                console.error("\(error)")
                throw ExitStatus.usage
            }
        }
        guard let profile else { return .unconditioned }
        let found = try Profile.forArgument(profile, console)
        return .constant(found.conditions, name: found.id)
    }
}
