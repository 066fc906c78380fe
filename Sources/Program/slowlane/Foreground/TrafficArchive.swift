internal import CommandSupport
internal import Determinism
internal import Foundation
internal import HTTPTypes
internal import Impairment
internal import Proxy
internal import Wire

/// The recording of the HTTP exchanges of a proxy in a HAR file.
struct TrafficRecording: Sendable {
    /// Returns the error of writing.
    private let task: Task<(any Error)?, Never>

    /// Records from now on until the proxy stops. Throws if the file cannot be created.
    init(of proxy: Proxy, path: URL) async throws {
        // Before the observation, which takes connections from the fast path.
        try Data().write(to: path)
        let observation = await proxy.observe(.exchanges)
        let archive = try TrafficArchive(path: path, startUnixNanoseconds: observation.startUnixNanoseconds)
        task = Task { await Self.record(observation.events, in: archive) }
    }

    /// Completes the file of a proxy that has stopped. Throws if an entry could not be written.
    func end() async throws {
        if let error = await task.value { throw error }
    }

    private static func record(_ events: AsyncStream<ProxyEvent>, in archive: TrafficArchive) async -> (any Error)? {
        var archive = archive
        var last = Instant.start
        do {
            for await case .exchange(let event, let connection, let time) in events {
                last = time
                try archive.record(event, connection: connection, at: time)
            }
            try archive.finish(at: last)
            return nil
        } catch {
            return error
        }
    }
}

/// A HAR file of the HTTP exchanges of a proxy. An entry is written when its exchange ends; the file is complete after
/// ``finish()``.
struct TrafficArchive {
    /// An exchange under way.
    private struct Exchange {
        var entry: HTTPArchive.Entry
        let start: Instant
        var requestDelivered: Instant?
        var responseStarted: Instant?
    }

    /// The most exchanges under way; further ones are not recorded.
    private static let openMax = 10_000
    private static let targetBytesMax = 8_192

    private let file: FileHandle
    private let startUnixNanoseconds: Int64
    private let tail: String
    private var open: [ExchangeID: Exchange] = [:]
    private var isEmpty = true

    /// Creates the file. Throws if that fails.
    ///
    /// - Parameter startUnixNanoseconds: The time of ``Determinism/Instant/start`` of the events.
    init(path: URL, startUnixNanoseconds: Int64) throws {
        try Data().write(to: path)
        file = try FileHandle(forWritingTo: path)
        self.startUnixNanoseconds = startUnixNanoseconds
        let frame = HTTPArchive.frame(
            version: SlowlaneVersion.current,
            comment: "HTTP in clear text, as seen by the proxy; without header fields and bodies.")
        tail = frame.tail
        try file.write(contentsOf: Data(frame.head.utf8))
    }

    /// Records an event. Throws if writing fails.
    mutating func record(_ event: ExchangeEvent, connection: Int, at time: Instant) throws {
        guard let id = event.exchange else { return }
        switch event {
        case .requestStarted(_, let head):
            guard open.count < Self.openMax else { return }
            var entry = HTTPArchive.Entry(started: date(time), method: head.method, url: Self.url(head))
            entry.connection = "\(connection)"
            if let stream = id.stream {
                entry.httpVersion = "h2"
                entry.members.append(("_stream", "\(stream)"))
            }
            open[id] = Exchange(entry: entry, start: time)
        case .requestRead(_, let bytes): open[id]?.entry.requestBytes = bytes
        case .requestDelivered: open[id]?.requestDelivered = time
        case .responseStarted(_, let head):
            open[id]?.responseStarted = time
            open[id]?.entry.status = head.status
            if let type = head.fields[.contentType] { open[id]?.entry.mimeType = type }
        case .responseRead(_, _, let bytes): open[id]?.entry.responseBytes = bytes
        case .faultInjected(_, let rule, let point, _):
            open[id]?.entry.members.append(("_fault", JSONText.string("\(rule + 1) \(point.rawValue)")))
        case .responseDelivered(_, let status, _):
            open[id]?.entry.status = status
            try end(id, at: time)
        case .protocolSwitched: try end(id, at: time)
        case .interrupted: try end(id, at: time, error: "the connection ended before the response was delivered")
        case .requested, .responseSampled, .faultMissed, .pings, .notHTTP, .tls, .handshakeFault,
            .streamFault:
            break
        }
    }

    /// Writes the exchanges under way and the end of the file. Throws if writing fails.
    mutating func finish(at time: Instant) throws {
        for id in open.keys.sorted() { try end(id, at: time, error: "the recording ended before the response") }
        try file.write(contentsOf: Data((tail + "\n").utf8))
        try file.close()
    }

    private mutating func end(_ id: ExchangeID, at time: Instant, error: String? = nil) throws {
        guard var exchange = open.removeValue(forKey: id) else { return }
        let delivered = min(exchange.requestDelivered ?? exchange.responseStarted ?? time, time)
        let started = min(max(exchange.responseStarted ?? time, delivered), time)
        exchange.entry.send = delivered - exchange.start
        exchange.entry.wait = started - delivered
        exchange.entry.receive = time - started
        exchange.entry.error = error
        try file.write(contentsOf: Data(((isEmpty ? "\n" : ",\n") + exchange.entry.text).utf8))
        isEmpty = false
    }

    /// The URL of a request in origin form, whose server is named by `Host`.
    private static func url(_ head: HTTPRequestHead) -> String {
        let host = head.hosts.first ?? "unknown.invalid"
        return "http://\(host)" + String(decoding: head.target.utf8.prefix(targetBytesMax), as: UTF8.self)
    }

    private func date(_ time: Instant) -> String {
        let nanoseconds = startUnixNanoseconds + (time - .start).count
        let date = Date(timeIntervalSince1970: Double(nanoseconds) / 1_000_000_000)
        return date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
