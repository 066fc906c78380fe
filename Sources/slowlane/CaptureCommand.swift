internal import ArgumentParser
internal import Foundation
internal import PacketCapture

/// `slowlane capture`.
struct CaptureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "capture",
        abstract: "Shows the connections and HTTP exchanges of a port as they pass an interface.",
        discussion: """
            Examples:
              slowlane capture -i lo --port 8000
              slowlane capture -i lo --port 8000 --http
              slowlane capture -i lo --port 9000 -w phone.pcap --for 30

            It listens in, and changes nothing: real packets as the kernel sends them, so on both sides of a proxy those \
            between program and proxy. What the modelled link carried is written by 'slowlane proxy --pcapng F'.

            Times are those of the packets. A query string is not printed. Ends with SIGINT (Ctrl-C), SIGTERM or --for, \
            and says then how many packets it saw and how many got lost.

            Exit status: 0; 69 no such interface; 77 not permitted.
            """)

    @Option(name: [.customShort("i"), .long], help: "Which interface: lo, eth0, any.")
    var interface = Self.loopback

    @Option(help: "The server's TCP port.")
    var port: Int

    @Option(name: [.customShort("w"), .customLong("write")], help: "Write the packets to this pcap file too.")
    var file: String?

    @Flag(help: "Print each HTTP exchange: method, path, status, sizes, times.")
    var http = false

    @Option(name: .customLong("for"), help: "Stop after so many seconds.")
    var seconds: Double?

    private static var loopback: String {
        #if os(Linux)
            "lo"
        #else
            "lo0"
        #endif
    }

    func validate() throws {
        guard (1...65535).contains(port) else { throw ValidationError("--port \(port) is not within 1 to 65535") }
        if let seconds, !(seconds > 0 && seconds <= 1_000_000) {
            throw ValidationError("--for \(seconds) is not within 0 to 1000000 seconds")
        }
    }

    func run() async throws {
        let console = Console()
        let happenings = Happenings()
        let packets: LiveCapture
        do {
            packets = try LiveCapture(interface: interface, filter: "tcp port \(port)", writingTo: file)
        } catch {
            console.print("error: \(error)\(advice(error))", to: .progress)
            if case .notPermitted = error { throw ExitStatus.notPermitted }
            throw ExitStatus.unavailable
        }
        let linkType = packets.linkType
        console.print("capturing TCP port \(port) on \(interface)\(file.map { ", writing to \($0)" } ?? "")")
        // Lines are written as they come: who does not read them makes the kernel drop packets, and that is counted.

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
            _ = await happenings.next()
            packets.stop()
        }
        let counts: LiveCapture.Counts
        do {
            // It waits for packets, so it has a thread of its own.
            counts = try await withCheckedThrowingContinuation { continuation in
                Thread.detachNewThread { continuation.resume(with: Result { try readAll() }) }
            }
        } catch {
            console.print("error: \(error)", to: .progress)
            console.flush()
            throw ExitStatus.unavailable
        }
        timing.cancel()
        signalling.cancel()
        console.print(
            "\(counts.received) packets, \(counts.dropped) dropped by the kernel, "
                + "\(counts.droppedByInterface) by the interface", to: .progress)
        console.flush()
    }

    private func advice(_ error: LiveCapture.CaptureError) -> String {
        guard case .notPermitted = error else { return "" }
        let path = Bundle.main.executablePath ?? "PATH/slowlane"
        return "; run it as root, or once 'sudo setcap cap_net_raw,cap_net_admin=eip \(path)'"
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
            line += Units.line("\(exchange.method) \(path.prefix(200))\(query) -> ")
            line += exchange.status.map(String.init) ?? "no answer"
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

    /// The time of day, UTC.
    private static func clock(_ nanoseconds: Int64) -> String {
        let second = nanoseconds / 1_000_000_000 % 86400
        return String(
            format: "%02d:%02d:%02d.%06d", second / 3600, second / 60 % 60, second % 60,
            nanoseconds / 1000 % 1_000_000)
    }
}
