internal import ArgumentParser
internal import ConfigFiles
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

    @OptionGroup var options: LinkOptions

    @Option(help: "What the lines call it; the profile's or timeline's name unless given.")
    var name: String?

    @Option(help: "What to transfer, with commas between.")
    var plan = "ttfb,down:10240,up:10240,pp:20"

    @Option(help: "How often the plan is run, one trial after the other on one link.")
    var trials = 20

    @Flag(help: "Say on standard error how many packets were modelled, and how fast.")
    var stats = false

    func validate() throws {
        guard (1...1_000_000).contains(trials) else { throw ValidationError("--trials is not within 1 to 1000000") }
        guard options.givenCount == 1 else {
            throw ValidationError("give one of --profile, --timeline, or --netem-down and --netem-up")
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
        let label: String
        var link: Trials
        switch try options.link(console) {
        case .follows(let file):
            label = file.id
            link = Trials(following: file.timeline, seed: options.seed, client: options.client, server: options.server)
        case .holds(let conditions, name: let word):
            label = word
            link = Trials(conditions, seed: options.seed, client: options.client, server: options.server)
        case .nothing: throw ExitStatus.usage
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
        let seconds = span / .seconds(1)
        let rate = String(format: "%.2f", Double(packets) / seconds / 1e6)
        console.print(
            "\(packets) packets in \(String(format: "%.3f", seconds)) s: \(rate) million a second", to: .progress)
    }
}
