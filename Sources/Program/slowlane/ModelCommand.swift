internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import TCPModel

/// `slowlane model`.
struct ModelCommand: ParsableCommand, LinkArguments {
    static let configuration = CommandConfiguration(
        commandName: "model",
        abstract: "Simulate TCP transfers over a link, without waiting, and print their durations.",
        discussion: """
            Examples:
              slowlane model --profile 3g --plan ttfb,down:102400 --trials 5
              slowlane model --delay 200ms --rate 1mbit --plan down:102400
              slowlane model --netem-down 'delay 100ms loss 5% rate 780kbit' \\
                  --netem-up 'delay 100ms loss 5%' --plan pp:20 --trials 200
              slowlane model --timeline subway --plan down:102400 --trials 50
              slowlane model --timeline '0s: 3g, 20s: 100-loss, 50s: edge'
              slowlane model --profile edge --trials 1000 --summary

            The plan is a comma-separated list:
              ttfb                a request of 100 B and a response of 200 B
              down:N, up:N        N bytes in one direction (N >= 100)
              pp:K[:S]            K round trips of S bytes each way (default for S: 200)
              conn                a handshake
              odrip:D             1 kB down every 100 ms, with an outage of D seconds
              obulk:D:N[:A]       N bytes down, with an outage of D seconds that
                                  starts after A seconds (default for A: 2)
              oreq:D, oconn:D     a request, or a handshake, during an outage of D
                                  seconds

            Each transfer prints one line of JSON with times in milliseconds; with --summary, all trials of a transfer \
            print one row with percentiles. Trials run one after the other on one link, and a \
            timeline continues from one to the next. TCP stacks: linux (6.5 and later), apple, rfc.

            Exit status: 0 success; 64 wrong arguments, or conditions that allow no connection; 65 invalid file.
            """)

    @OptionGroup(title: "Network conditions (one is required)") var profileOption: ProfileOption
    @OptionGroup(title: "Network conditions (one is required)") var figureOptions: FigureOptions
    @OptionGroup(title: "Network conditions (one is required)") var link: LinkOptions

    @Option(help: ArgumentHelp("Name in the output lines. (default: the profile or timeline)", valueName: "name"))
    var name: String?

    @Option(help: ArgumentHelp("Transfers to run, separated by commas.", valueName: "transfers"))
    var plan = "ttfb,down:10240,up:10240,pp:20"

    @Option(help: ArgumentHelp("Number of runs of the plan.", valueName: "count"))
    var trials = 20

    @Flag(help: "Print percentiles of the times of each transfer instead of lines of JSON.")
    var summary = false

    @Flag(help: "Print the number of modelled packets and the packets per second to standard error.")
    var stats = false

    func validate() throws {
        guard (1...1_000_000).contains(trials) else { throw ValidationError("--trials must be from 1 to 1000000") }
        try checkLink(1...1)
    }

    func run() throws {
        let console = Console()
        let transfers: [Transfer]
        do {
            transfers = try Transfer.plan(plan)
        } catch {
            console.error("--plan \(error)")
            throw ExitStatus.usage
        }
        let source = try linkSource(console)
        if let problem = source.connectionProblem {
            console.error("cannot model \(problem), or test this one with 'slowlane proxy'")
            throw ExitStatus.usage
        }
        var model: Trials
        switch source {
        case .timeline(let file):
            model = Trials(following: file.timeline, seed: link.seed, client: link.client, server: link.server)
        case .constant(let conditions, _, _):
            model = Trials(conditions, seed: link.seed, client: link.client, server: link.server)
        case .unconditioned: throw ExitStatus.usage
        }
        let start = ContinuousClock.now
        var summaries = transfers.map { TrialSummary(of: $0) }
        for repetition in 0..<trials {
            for (index, transfer) in transfers.enumerated() {
                let result = model.run(transfer)
                if summary {
                    summaries[index].add(result)
                } else {
                    console.print(result.json(profile: name ?? source.name, repetition: repetition))
                }
            }
        }
        if summary {
            for line in TransferText.table(summaries, width: Terminal.tableWidth) { console.print(line) }
        }
        if stats {
            console.print(Units.throughput(model.packetsOffered, in: ContinuousClock.now - start), to: .progress)
        }
    }
}
