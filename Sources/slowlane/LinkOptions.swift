internal import ArgumentParser
internal import ConfigFiles
internal import LinkModel
internal import TCPModel

/// What a link is like, as commands are told: by a profile, in netem's words, or by a timeline; and its chance.
struct LinkOptions: ParsableArguments {
    @Option(help: "A built-in profile's name, or a path to a file.")
    var profile: String?

    @Option(help: "Instead of a profile: the downlink in netem's words.")
    var netemDown: String?

    @Option(help: "Instead of a profile: the uplink in netem's words.")
    var netemUp: String?

    @Option(help: "Instead of a profile: a built-in timeline's name, a path to a file, or times with links.")
    var timeline: String?

    @Option(help: "How the clients' TCP behaves: linux, apple or rfc.")
    var clientStack = "linux"

    @Option(help: "How the server's TCP behaves.")
    var serverStack = "linux"

    @Option(help: "Where all chance comes from: the same seed gives the same losses.")
    var seed: UInt64 = 1

    /// How many of the ways to say it are used.
    var givenCount: Int { [profile, netemDown, timeline].count(where: { $0 != nil }) }

    var client: StackPreset { StackPreset.named[clientStack] ?? .linux }
    var server: StackPreset { StackPreset.named[serverStack] ?? .linux }

    func validate() throws {
        guard (netemDown == nil) == (netemUp == nil) else {
            throw ValidationError("--netem-down and --netem-up belong together; '' is a direction without conditions")
        }
        guard givenCount <= 1 else {
            throw ValidationError("give one of --profile, --timeline, or --netem-down and --netem-up")
        }
        for (option, name) in [("--client-stack", clientStack), ("--server-stack", serverStack)] {
            guard StackPreset.named[name] != nil else {
                throw ValidationError(
                    "\(option) '\(name.prefix(40))' is none of \(StackPreset.named.keys.sorted().joined(separator: ", "))"
                )
            }
        }
    }

    /// What they come to, with its name.
    enum Link {
        case holds(Conditions, name: String)
        case follows(TimelineFile)
        case nothing
    }

    /// Reads them: tells what is wrong and ends with the right status.
    func link(_ console: Console) throws -> Link {
        if let timeline { return .follows(try TimelineFile.forArgument(timeline, console)) }
        if let netemDown, let netemUp {
            do {
                return .holds(
                    Conditions(up: try NetemExpression.parse(netemUp), down: try NetemExpression.parse(netemDown)),
                    name: "netem")
            } catch {
                console.print("error: \(error)", to: .progress)
                throw ExitStatus.usage
            }
        }
        guard let profile else { return .nothing }
        let found = try Profile.forArgument(profile, console)
        return .holds(found.conditions, name: found.id)
    }
}
