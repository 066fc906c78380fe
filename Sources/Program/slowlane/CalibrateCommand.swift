internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import Foundation
internal import LinkModel
internal import PacketCapture
internal import TCPModel

/// `slowlane calibrate`.
struct CalibrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "calibrate",
        abstract: "Estimate the conditions of a real link from a packet capture, as a profile.",
        discussion: """
            Examples:
              slowlane calibrate office.pcapng > office.yaml
              slowlane calibrate office.pcapng --check
              slowlane calibrate train.pcap -o train.yaml --timeline ride.yaml
              slowlane calibrate train.pcap -o train.yaml --trace-down train.trace
              slowlane calibrate office.pcapng --json

            The capture (pcap or pcapng) is taken at one end of the connections, for example with 'slowlane capture -w' or \
            'tcpdump -s 128 -w', and starts before them. Only headers of TCP are read, so that encrypted traffic is no \
            obstacle. A download and an upload of some seconds each show rates and queues.

            Each figure has its interval and its evidence in a comment. A figure that the capture does not show is left \
            out of the profile, and the reason is printed to standard error.

            --check replays the transfers of the capture on the model with the estimated conditions, and compares their \
            times.

            Exit status: 0 success; 1 with --check, the median of the differences exceeds 10 %, or there is no transfer to \
            compare; 64 wrong arguments; 65 the file is no capture, or shows nothing; 69 a file cannot be written.
            """)

    @Argument(help: "The capture: a pcap or pcapng file.", completion: NameCompletion.file)
    var capture: String

    @Option(help: ArgumentHelp("Use only connections to this TCP port. (default: all connections)", valueName: "port"))
    var port: Int?

    @Option(
        help: ArgumentHelp(
            "The end at which the capture was taken: client or server. (default: found from the handshakes)",
            valueName: "end"))
    var at: End?

    @Option(name: [.customShort("o"), .long], help: ArgumentHelp("Write the profile to this file.", valueName: "file"))
    var output: String?

    @Option(help: ArgumentHelp("Write the outages to this timeline file; needs --output.", valueName: "file"))
    var timeline: String?

    @Option(
        help: ArgumentHelp(
            "If the downlink's rate changes, write it to this trace file, which the profile then names.",
            valueName: "file"))
    var traceDown: String?

    @Option(help: ArgumentHelp("The same for the uplink.", valueName: "file"))
    var traceUp: String?

    @Flag(help: "Print the result as one JSON object instead of the profile.")
    var json = false

    @Flag(help: "Replay the transfers of the capture on the model, and print how far their times differ.")
    var check = false

    /// An end of a connection.
    enum End: String, ExpressibleByArgument, CaseIterable { case client, server }

    /// The largest median difference with which the check succeeds.
    private static let differenceMax = 0.1

    func validate() throws {
        if let port, !(1...65535).contains(port) { throw ValidationError("--port \(port) must be from 1 to 65535") }
        if timeline != nil && output == nil {
            throw ValidationError("--timeline needs --output, the profile that it names")
        }
    }

    func run() throws {
        let console = Console()
        let packets: [CapturedPacket]
        let calibration: Calibration
        do {
            let contents = try CaptureReader.read(capture, port: port.map { UInt16($0) })
            packets = contents.packets
            if contents.isTruncated {
                console.print("only the first \(CaptureReader.packetsMax) packets are used", to: .progress)
            }
            if contents.endsEarly { console.print("the file ends within a packet", to: .progress) }
            calibration = try Calibration(packets, at: at.map { $0 == .client ? .client : .server })
        } catch let error as Calibration.AnalysisError {
            console.error("\(capture): \(error)")
            throw ExitStatus.invalidFile
        } catch {
            console.error("\(error)")
            throw ExitStatus.invalidFile
        }
        var text = CalibrationText(calibration: calibration, source: URL(filePath: capture).lastPathComponent)
        for (direction, path) in [(Direction.down, traceDown), (.up, traceUp)] {
            guard let path else { continue }
            guard let trace = calibration.trace(direction) else {
                console.print(
                    "\(path) is not written: the rate of the \(direction == .up ? "uplink" : "downlink") does not change",
                    to: .progress)
                continue
            }
            try write(TraceFile.text(trace), to: path, console)
            text.traces[direction] = Self.path(path, inFolderOf: output)
        }
        if let output { try write(text.profile, to: output, console) }
        if let timeline, let output {
            if calibration.outages.isEmpty {
                console.print("\(timeline) is not written: the capture shows no outage", to: .progress)
            } else {
                try write(text.timeline(profile: Self.path(output, inFolderOf: timeline)), to: timeline, console)
            }
        }
        if json {
            console.print(text.json)
        } else if output == nil && !check {
            console.print(String(text.profile.dropLast()))
        }
        for verdict in text.verdicts { console.print(verdict, to: .progress) }
        if check { try compare(packets, calibration, console) }
    }

    private func compare(_ packets: [CapturedPacket], _ calibration: Calibration, _ console: Console) throws {
        let replay = TransferReplay(packets, calibration)
        guard let median = replay.medianDifference else {
            console.error("the capture has no complete transfer to compare")
            throw ExitStatus.failed
        }
        for line in CalibrationText.table(replay, width: Terminal.tableWidth) { console.print(line) }
        let paused =
            replay.pausedCount > 0
            ? "; \(TextTable.count(replay.pausedCount, "transfer")) with pauses of an application left out" : ""
        console.print(
            "median difference of \(TextTable.count(replay.comparisons.count, "transfer")): "
                + String(format: "%.1f %%", median * 100) + paused)
        if median > Self.differenceMax { throw ExitStatus.failed }
    }

    /// Returns a path relative to the folder of another file, if both are in one folder; otherwise an absolute path.
    private static func path(_ path: String, inFolderOf other: String?) -> String {
        guard let other else { return path }
        let (file, folder) = (URL(filePath: path).standardizedFileURL, URL(filePath: other).standardizedFileURL)
        return file.deletingLastPathComponent() == folder.deletingLastPathComponent()
            ? file.lastPathComponent : file.path(percentEncoded: false)
    }

    private func write(_ text: String, to path: String, _ console: Console) throws {
        do {
            try Data(text.utf8).write(to: URL(filePath: path))
        } catch {
            console.error("cannot write \(path)")
            throw ExitStatus.unavailable
        }
    }
}
