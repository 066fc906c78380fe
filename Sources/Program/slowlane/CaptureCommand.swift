internal import ArgumentParser
internal import CommandSupport
internal import PacketCapture

/// `slowlane capture`.
struct CaptureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "capture",
        abstract: "Show the connections and HTTP exchanges of a TCP port on a network interface.",
        discussion: """
            Examples:
              slowlane capture -i lo --port 8000
              slowlane capture -i lo --port 8000 --http
              slowlane capture -i lo --port 9000 -w phone.pcap --for 30

            The command captures the real packets of this machine with libpcap and does not delay them. With the port of a \
            proxy these are the packets between the client and the proxy, with the port of its upstream those between the \
            proxy and the server. 'slowlane proxy --pcapng FILE' writes the packets of the modelled link instead.

            The printed times are those at which packets were captured. Query strings are not printed. SIGINT (Ctrl-C), SIGTERM or --for end \
            the capture; the command then prints the numbers of captured and dropped packets.

            libpcap must be installed ('slowlane doctor' reports whether it is).

            Exit status: 0 success; 69 no libpcap, unknown interface, or the file or the output cannot be written; 77 not permitted.
            """)

    @Option(
        name: [.customShort("i"), .long],
        help: ArgumentHelp("Network interface, such as lo, eth0 or any.", valueName: "name"))
    var interface = Self.loopback

    @Option(help: ArgumentHelp("TCP port of the server.", valueName: "port"))
    var port: Int

    @Option(
        name: [.customShort("w"), .customLong("write")],
        help: ArgumentHelp("Also write the packets to this pcap file.", valueName: "file"))
    var file: String?

    @Flag(help: "Print HTTP exchanges instead of connections: method, path, status, sizes, times.")
    var http = false

    @Option(name: .customLong("for"), help: ArgumentHelp("Stop after this many seconds.", valueName: "seconds"))
    var seconds: Double?

    private static var loopback: String {
        #if os(Linux)
        "lo"
        #else
        "lo0"
        #endif
    }

    func validate() throws {
        guard (1...65535).contains(port) else { throw ValidationError("--port \(port) must be from 1 to 65535") }
        if let seconds, !(seconds > 0 && seconds <= 1_000_000) {
            throw ValidationError("--for \(seconds) must be above 0 and at most 1000000 seconds")
        }
    }

    func run() async throws {
        let console = Console()
        let events = ForegroundEvents(endsWithOutput: true)
        let packets: LiveCapture
        do {
            packets = try LiveCapture(interface: interface, filter: "tcp port \(port)", writingTo: file)
        } catch {
            console.error("\(error)\(CaptureText.advice(error))")
            if case .notPermitted = error { throw ExitStatus.notPermitted }
            throw ExitStatus.unavailable
        }
        console.print("capturing TCP port \(port) on \(interface)\(file.map { ", writing to \($0)" } ?? "")")
        let signalling = Task {
            _ = await events.next()
            packets.stop()
        }
        defer { signalling.cancel() }
        let counts: LiveCapture.Counts
        do {
            // Lines are written synchronously: a slow reader makes the kernel drop packets, and those are counted.
            counts = try await packets.readConnections(
                toPort: UInt16(port), readsHTTP: http, for: seconds.map { .seconds($0) }
            ) { [http] event in
                if let line = CaptureText.line(event, showsConnections: !http) { console.print(line) }
            }
        } catch {
            console.error("\(error)")
            console.flush()
            throw ExitStatus.unavailable
        }
        console.print(CaptureText.summary(counts), to: .progress)
        console.flush()
    }
}
