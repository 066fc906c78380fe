internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import LinkModel
internal import NIOPosix

/// `slowlane measure`.
struct MeasureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "measure",
        abstract: "Time transfers through a proxy and compare them with its profile's figures.",
        discussion: """
            Examples:
              slowlane measure edge 3g wifi
              slowlane measure --delay 200ms --rate 1mbit
              slowlane measure edge --json

            The command sends data through a proxy to an echo server on this machine and measures the time from \
            connect() to the last byte of the echo, with a new connection for each transfer. Each row shows the time \
            computed from the profile's figures and the median of the measured times. --trials is the number of \
            transfers per row; rows with an expected time below 100 ms have seven times as many. A row passes if both \
            times differ by at most 3 % or 2 ms, whichever is larger.

            Exit status: 0 all rows pass; 1 a row or a transfer failed; 64 wrong arguments, or no echo can arrive under \
            the profile; 65 invalid file.
            """)

    @Argument(help: "Built-in profiles or paths of profile files.", completion: NameCompletion.profile)
    var profiles: [String] = []

    @OptionGroup(title: "Figures (alone, or in place of a profile's)") var figureOptions: FigureOptions

    @Option(help: ArgumentHelp("Number of transfers per row.", valueName: "count"))
    var trials = 3

    @Flag(help: "Print one JSON object per row.") var json = false

    func validate() throws {
        guard (1...1000).contains(trials) else { throw ValidationError("--trials must be from 1 to 1000") }
        guard !profiles.isEmpty || figureOptions.isGiven else {
            throw ValidationError("give a profile, such as 'slowlane measure edge', or figures such as --delay 200ms")
        }
    }

    func run() async throws {
        let console = Console()
        let figures = try figureOptions.figures()
        var links = try profiles.map { argument in
            let profile = try Profile.forArgument(argument, console)
            return Timeline.NamedConditions(
                figures.name(changing: profile.id), figures.applied(to: profile.conditions))
        }
        if links.isEmpty {
            links = [Timeline.NamedConditions(figures.name(changing: nil), figures.applied(to: .clear))]
        }
        var rows = [MeasurementText.header]
        var allPass = true
        do {
            for link in links { try ProfileMeasurement.check(link) }
            console.print(
                "measuring \(links.map(\.name).joined(separator: ", ")), \(trials) times each ...", to: .progress)
            for link in links {
                try await ProfileMeasurement.measure(
                    link, trials: trials, on: MultiThreadedEventLoopGroup.singleton
                ) { result in
                    allPass = allPass && result.isWithinTolerance
                    if json {
                        console.print(MeasurementText.json(result))
                    } else {
                        rows.append(MeasurementText.row(result))
                    }
                    console.print(MeasurementText.progress(result), to: .progress)
                }
            }
        } catch let error as ProfileMeasurement.MeasurementError {
            console.error(error)
            throw error.isUnsuitableProfile ? ExitStatus.usage : ExitStatus.failed
        }
        if !json {
            for line in TextTable.lines(rows, width: Terminal.tableWidth) { console.print(line) }
        }
        if !allPass {
            console.error("a measured time differs by more than 3 % and 2 ms; check whether the machine is busy")
            throw ExitStatus.failed
        }
    }
}
