internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import LinkModel
internal import TCPModel

/// The options that describe a link: a profile, figures, netem expressions or a timeline; TCP stacks and the random seed.
struct LinkOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A built-in profile ('slowlane profiles' lists them) or the path of a profile file.", valueName: "name|file"
        ), completion: NameCompletion.profile
    )
    var profile: String?

    @OptionGroup var figureOptions: FigureOptions

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

    @Option(
        help: ArgumentHelp(
            "A built-in timeline, the path of a timeline file, or times with profiles ('0s: 3g, 20s: 100-loss'), "
                + "instead of a profile.",
            valueName: "name|file|times"),
        completion: NameCompletion.timeline)
    var timeline: String?

    @Option(
        help: ArgumentHelp("TCP stack to model for clients: linux, apple or rfc.", valueName: "stack"),
        completion: .list(StackPreset.named.keys.sorted()))
    var clientStack = "linux"

    @Option(
        help: ArgumentHelp("TCP stack to model for the server: linux, apple or rfc.", valueName: "stack"),
        completion: .list(StackPreset.named.keys.sorted()))
    var serverStack = "linux"

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Random seed; runs with the same seed lose the same packets. (default: 1)", valueName: "number"),
        transform: SeedArgument.parse)
    var seed: UInt64 = 1

    private var hasNetem: Bool { netemDown != nil || netemUp != nil }

    /// The number of given descriptions, which exclude each other: a profile or figures, a timeline, netem expressions.
    var givenCount: Int {
        [profile != nil || figureOptions.isGiven, timeline != nil, hasNetem].count(where: { $0 })
    }

    /// The descriptions for error messages.
    static let descriptions = "--profile (or figures such as --delay), --timeline, and --netem-down with --netem-up"

    var client: StackPreset { StackPreset.named[clientStack] ?? .linux }
    var server: StackPreset { StackPreset.named[serverStack] ?? .linux }

    func validate() throws {
        guard givenCount <= 1 else { throw ValidationError("give one of \(Self.descriptions)") }
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
        if hasNetem {
            do {
                return .constant(
                    Conditions(
                        up: try NetemExpression.parse(netemUp ?? ""), down: try NetemExpression.parse(netemDown ?? "")),
                    name: "netem", profile: nil)
            } catch {
                console.error("\(error)")
                throw ExitStatus.usage
            }
        }
        let figures = try figureOptions.figures()
        let found = try profile.map { try Profile.forArgument($0, console) }
        if found == nil && figures.isEmpty { return .unconditioned }
        return .constant(
            figures.applied(to: found?.conditions ?? .clear), name: figures.name(changing: found?.id),
            profile: figures.isEmpty ? found?.id : nil)
    }
}
