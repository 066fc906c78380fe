internal import CommandSupport
internal import Foundation
internal import PacketCapture

/// The lines of a capture.
enum CaptureText {
    /// Returns the line of an event; `nil` for the start or end of a connection if those are not shown.
    ///
    /// Times are times of day in UTC. Query strings are left out because they may contain secrets.
    static func line(_ event: CaptureEvent, showsConnections: Bool) -> String? {
        switch event {
        case .opened(let client, let server, let time):
            return showsConnections ? "\(clock(time))  \(client) -> \(server) opened" : nil
        case .closed(let client, let server, let up, let down, let isReset, let time):
            return showsConnections
                ? "\(clock(time))  \(client) -> \(server) \(isReset ? "reset" : "closed"), "
                    + "\(Units.bytes(Int(up))) up, \(Units.bytes(Int(down))) down" : nil
        case .exchange(let exchange): return line(exchange)
        case .unreadable(let client, _, let reason, let time):
            return "\(clock(time))  \(client)  \(reason)"
        }
    }

    private static func line(_ exchange: CapturedExchange) -> String {
        let path = exchange.target.prefix { $0 != "?" }
        let query = path.count < exchange.target.count ? "?..." : ""
        var line = "\(clock(exchange.start))  \(exchange.client)  "
        line += TextTable.singleLine("\(exchange.method) \(path.prefix(200))\(query) -> ")
        line += exchange.status.map(String.init) ?? "no response"
        line += ", \(Units.bytes(Int(exchange.requestBytes))) up, \(Units.bytes(Int(exchange.responseBytes))) down"
        if let first = exchange.firstByte { line += ", first byte \(milliseconds(first - exchange.start))" }
        return line + ", \(milliseconds(exchange.end - exchange.start))"
    }

    /// Returns the packet counters of a capture in words.
    static func summary(_ counts: LiveCapture.Counts) -> String {
        "\(TextTable.count(counts.received, "packet")), \(counts.dropped) dropped by the kernel, "
            + "\(counts.droppedByInterface) by the interface"
    }

    /// Returns the remedy for an error, to be appended to its description.
    static func advice(_ error: LiveCapture.CaptureError) -> String {
        guard case .notPermitted = error else { return "" }
        let path = Bundle.main.executablePath ?? "PATH/slowlane"
        return "; run the command as root, or run once 'sudo setcap cap_net_raw,cap_net_admin=eip \(path)'"
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
