internal import ArgumentParser
internal import CommandSupport
internal import Foundation
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

            Exit status: 0 success; 69 unknown interface, or the file cannot be written; 77 not permitted.
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
        let events = ForegroundEvents()
        let packets: LiveCapture
        do {
            packets = try LiveCapture(interface: interface, filter: "tcp port \(port)", writingTo: file)
        } catch {
            console.error("\(error)\(advice(error))")
            if case .notPermitted = error { throw ExitStatus.notPermitted }
            throw ExitStatus.unavailable
        }
        let linkType = packets.linkType
        console.print("capturing TCP port \(port) on \(interface)\(file.map { ", writing to \($0)" } ?? "")")
        // Lines are written synchronously: a slow reader makes the kernel drop packets, and those are counted.

        let readsHTTP = http
        let wanted = UInt16(port)
        @Sendable func readAll() throws -> LiveCapture.Counts {
            var reader = ConnectionReader(port: wanted, readsHTTP: readsHTTP)
            return try packets.run { frame, time in
                guard let segment = TCPSegment(frame, linkType: linkType) else { return }
                for event in reader.process(segment, at: time) {
                    if let line = Self.line(event, showsConnections: !readsHTTP) { console.print(line) }
                }
            }
        }
        let timing = Task { [seconds] in
            guard let seconds else { return }
            try await Task.sleep(for: .seconds(seconds))
            packets.stop()
        }
        let signalling = Task {
            _ = await events.next()
            packets.stop()
        }
        let counts: LiveCapture.Counts
        do {
            // Blocking; runs on a thread of its own.
            counts = try await withCheckedThrowingContinuation { continuation in
                Thread.detachNewThread { continuation.resume(with: Result { try readAll() }) }
            }
        } catch {
            console.error("\(error)")
            console.flush()
            throw ExitStatus.unavailable
        }
        timing.cancel()
        signalling.cancel()
        console.print(
            "\(TextTable.count(Int(counts.received), "packet")), \(counts.dropped) dropped by the kernel, "
                + "\(counts.droppedByInterface) by the interface", to: .progress)
        console.flush()
    }

    private func advice(_ error: LiveCapture.CaptureError) -> String {
        guard case .notPermitted = error else { return "" }
        let path = Bundle.main.executablePath ?? "PATH/slowlane"
        return "; run the command as root, or run once 'sudo setcap cap_net_raw,cap_net_admin=eip \(path)'"
    }

    private static func line(_ event: CaptureEvent, showsConnections: Bool) -> String? {
        switch event {
        case .opened(let client, let server, let time):
            return showsConnections ? "\(clock(time))  \(client) -> \(server) opened" : nil
        case .closed(let client, let server, let up, let down, let isReset, let time):
            return showsConnections
                ? "\(clock(time))  \(client) -> \(server) \(isReset ? "reset" : "closed"), "
                    + "\(Units.bytes(Int(up))) up, \(Units.bytes(Int(down))) down" : nil
        case .exchange(let exchange):
            let path = exchange.target.prefix { $0 != "?" }
            let query = path.count < exchange.target.count ? "?..." : ""
            var line = "\(clock(exchange.start))  \(exchange.client)  "
            line += TextTable.singleLine("\(exchange.method) \(path.prefix(200))\(query) -> ")
            line += exchange.status.map(String.init) ?? "no response"
            line += ", \(Units.bytes(Int(exchange.requestBytes))) up, \(Units.bytes(Int(exchange.responseBytes))) down"
            if let first = exchange.firstByte { line += ", first byte \(milliseconds(first - exchange.start))" }
            return line + ", \(milliseconds(exchange.end - exchange.start))"
        case .unreadable(let client, _, let reason, let time):
            return "\(clock(time))  \(client)  \(reason)"
        }
    }

    private static func milliseconds(_ nanoseconds: Int64) -> String {
        String(format: "%.3f ms", Double(nanoseconds) / 1e6)
    }

    /// Returns the time of day in UTC.
    private static func clock(_ nanoseconds: Int64) -> String {
        let second = nanoseconds / 1_000_000_000 % 86400
        return String(
            format: "%02d:%02d:%02d.%06d", second / 3600, second / 60 % 60, second % 60,
            nanoseconds / 1000 % 1_000_000)
    }
}
