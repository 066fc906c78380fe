internal import ArgumentParser
internal import Files
internal import Foundation
internal import LinkModel
internal import LinkWorkload

/// `slowlane model`.
struct ModelCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "model",
        abstract: "Runs the model of TCP over a link alone, in virtual time, and prints what an application would see.",
        discussion: """
            Each trial is one line of JSON with times in milliseconds. The plan is a list of:
              ttfb          100 B up, 200 B down          down:N, up:N   N bytes one way
              pp:K[:S]      K exchanges of S bytes        conn           a handshake
              odrip:D  obulk:D:N[:A]  oreq:D  oconn:D     the same with an outage of D seconds

            A timeline goes on while trials follow each other. Stacks: linux (6.5 and later), apple, rfc.

            Examples:
              slowlane model --profile 3g --plan ttfb,down:102400 --trials 5
              slowlane model --netem-down 'delay 100ms loss 5% rate 780kbit limit 50' \\
                  --netem-up 'delay 100ms loss 5% rate 330kbit limit 50' --name 3g-loss5 --plan pp:20 --trials 200
              slowlane model --timeline subway --plan down:102400 --trials 50 --server-stack apple
              slowlane model --timeline '0s: 3g, 20s: 100-loss, 50s: edge' --plan pp:100
            """)

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

    @Option(help: "What the lines call it; the profile's or timeline's name unless given.")
    var name: String?

    @Option(help: "What to transfer, with commas between.")
    var plan = "ttfb,down:10240,up:10240,pp:20"

    @Option(help: "How often the plan is run, one trial after the other on one link.")
    var trials = 20

    @Option(help: "Where all chance comes from: the same seed gives the same lines.")
    var seed: UInt64 = 1

    @Flag(help: "Say on standard error how many packets were modelled, and how fast.")
    var stats = false

    func validate() throws {
        guard (1...1_000_000).contains(trials) else { throw ValidationError("--trials is not within 1 to 1000000") }
        guard (netemDown == nil) == (netemUp == nil) else {
            throw ValidationError("--netem-down and --netem-up belong together; '' is a direction without conditions")
        }
        guard [profile, netemDown, timeline].count(where: { $0 != nil }) == 1 else {
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

    func run() throws {
        let console = Console()
        let items = try plan.split(separator: ",").map { word in
            guard let item = PlanItem(word) else {
                console.print(
                    "error: '\(word.prefix(40))' in --plan is none of ttfb, down:N, up:N (N >= 100), pp:K[:S], "
                        + "conn, odrip:D, obulk:D:N[:A], oreq:D, oconn:D", to: .progress)
                throw ExitStatus.usage
            }
            return item
        }
        guard let client = StackPreset.named[clientStack], let server = StackPreset.named[serverStack] else {
            throw ExitStatus.usage
        }
        let label: String
        var link: Trials
        if let timeline {
            let file = try TimelineFile.forArgument(timeline, console)
            label = file.id
            link = Trials(following: file.timeline, seed: seed, client: client, server: server)
        } else {
            let conditions: Conditions
            (label, conditions) = try self.link(console)
            link = Trials(conditions, seed: seed, client: client, server: server)
        }
        let start = ContinuousClock.now
        for repetition in 0..<trials {
            for item in items {
                console.print(link.run(item).json(profile: name ?? label, repetition: repetition))
            }
        }
        if stats { tell(link.packetsOffered, ContinuousClock.now - start, console) }
    }

    private func tell(_ packets: Int, _ span: Duration, _ console: Console) {
        let seconds = Double(span.components.seconds) + Double(span.components.attoseconds) / 1e18
        let rate = String(format: "%.2f", Double(packets) / seconds / 1e6)
        console.print(
            "\(packets) packets in \(String(format: "%.3f", seconds)) s: \(rate) million a second", to: .progress)
    }

    private func link(_ console: Console) throws -> (String, Conditions) {
        if let netemDown, let netemUp {
            do {
                return (
                    "netem",
                    Conditions(up: try NetemExpression.parse(netemUp), down: try NetemExpression.parse(netemDown))
                )
            } catch {
                console.print("error: \(error)", to: .progress)
                throw ExitStatus.usage
            }
        }
        let profile = try Profile.forArgument(profile ?? "", console, mustBeLive: false)
        return (profile.id, profile.conditions)
    }
}
