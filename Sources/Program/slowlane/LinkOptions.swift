internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import LinkModel
internal import TCPModel

/// The option `--profile`.
struct ProfileOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A built-in profile ('slowlane profiles' lists them) or the path of a profile file.", valueName: "name|file"
        ), completion: NameCompletion.profile
    )
    var profile: String?
}

/// The further options that describe a link: netem expressions or a timeline; TCP stacks and the random seed.
struct LinkOptions: ParsableArguments {
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

    fileprivate var hasNetem: Bool { netemDown != nil || netemUp != nil }

    var client: StackPreset { StackPreset.named[clientStack] ?? .linux }
    var server: StackPreset { StackPreset.named[serverStack] ?? .linux }

    func validate() throws {
        for (option, name) in [("--client-stack", clientStack), ("--server-stack", serverStack)] {
            guard StackPreset.named[name] != nil else {
                let names = StackPreset.named.keys.sorted()
                throw ValidationError(
                    "\(option) '\(name.prefix(40))' must be \(names.dropLast().joined(separator: ", ")) or \(names.last ?? "")"
                )
            }
        }
    }
}

/// The arguments of a command with a link: a profile or figures, a timeline, or netem expressions, which exclude each other.
///
/// The groups of options are not in each other, because ArgumentParser checks a group in a debug build each time that it
/// checks the group around it, which is four times.
protocol LinkArguments {
    var profileOption: ProfileOption { get }
    var figureOptions: FigureOptions { get }
    var link: LinkOptions { get }
}

extension LinkArguments {
    /// Throws unless the number of descriptions is in a range.
    func checkLink(_ range: ClosedRange<Int> = 0...1) throws {
        let given = [
            profileOption.profile != nil || figureOptions.isGiven, link.timeline != nil, link.hasNetem,
        ].count(where: { $0 })
        guard range.contains(given) else {
            throw ValidationError(
                "give one of --profile (or figures such as --delay), --timeline, and --netem-down with --netem-up")
        }
    }

    /// Returns the conditions; prints an error and throws an exit status if the options are invalid.
    func linkSource(_ console: Console) throws -> LinkSource {
        if let timeline = link.timeline { return .timeline(try TimelineFile.forArgument(timeline, console)) }
        if link.hasNetem {
            do {
                return .constant(
                    Conditions(
                        up: try NetemExpression.parse(link.netemUp ?? ""),
                        down: try NetemExpression.parse(link.netemDown ?? "")),
                    name: "netem", profile: nil)
            } catch {
                console.error("\(error)")
                throw ExitStatus.usage
            }
        }
        let figures = try figureOptions.figures()
        let found = try profileOption.profile.map { try Profile.forArgument($0, console) }
        if found == nil && figures.isEmpty { return .unconditioned }
        return .constant(
            figures.applied(to: found?.conditions ?? .clear), name: figures.name(changing: found?.id),
            profile: figures.isEmpty ? found?.id : nil)
    }
}
