internal import Determinism
internal import Scenario

/// An exchange of a run with all that its history has of it. All reports use the same numbers and names.
struct RunExchange {
    /// The number in the history.
    let number: Int
    /// The device or writer.
    let actor: String
    let method: String
    /// The name of the note; `nil` for the index.
    var row: String?
    /// The number of the connection; `nil` if it is unknown.
    let connection: Int?
    /// The attempt to connect whose connection this is the first exchange of.
    var connecting: Nanoseconds?
    /// 1 for the first request of a change, 2 for its repetition.
    let attempt: Int
    /// The name of the link when the request was sent.
    let link: String?
    let sent: Nanoseconds
    var requestBytes = 0
    var arrived: Nanoseconds?
    var responded: Nanoseconds?
    var serverStatus: Int?
    var responseBytes = 0
    var revision: Int?
    var received: Nanoseconds?
    var status: Int?
    var failed: Nanoseconds?
    var faults: [(time: Nanoseconds, index: Int, point: String?)] = []

    /// The end for the client; `nil` while open.
    var ended: Nanoseconds? { received ?? failed }

    /// The request target, with the name of the note instead of its identifier.
    var target: String { row.map { "/notes/\(Self.percentEncoded($0))" } ?? "/notes" }

    /// The request in a few words: `PUT n1`, `GET list`.
    var title: String { "\(method) \(row ?? "list")" }

    /// The end in words, as on the page of the run.
    var outcome: String {
        if let status { return "\(status)" }
        guard failed != nil else { return "open" }
        if let serverStatus { return "\(serverStatus), response lost" }
        return arrived == nil ? "lost" : "lost at the server"
    }

    private static func percentEncoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                result.append(Character(UnicodeScalar(byte)))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                result += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return result
    }
}

/// The exchanges, links and connections of a run, from its history.
struct RunFacts {
    /// A time span of a device with a name.
    struct Span {
        let name: String
        let start: Nanoseconds
        var end: Nanoseconds
    }

    /// A connection of a device.
    struct Connection {
        let actor: String
        let start: Nanoseconds
        var end: Nanoseconds?
    }

    private(set) var exchanges: [RunExchange] = []
    /// The links of each device, without gaps.
    private(set) var links: [String: [Span]] = [:]
    /// The times in which the client of a device did not run.
    private(set) var stops: [String: [Span]] = [:]
    private(set) var connections: [Int: Connection] = [:]
    /// The end of the history.
    let end: Nanoseconds

    private var indices: [Int: Int] = [:]
    private var attempts: [String: Int] = [:]
    private var used: Set<Int> = []

    init(_ history: History) {
        end = history.entries.last?.time ?? .zero
        for entry in history.entries { add(entry) }
    }

    private mutating func change(_ exchange: Int, _ body: (inout RunExchange) -> Void) {
        if let index = indices[exchange] { body(&exchanges[index]) }
    }

    private mutating func add(_ entry: History.Entry) {
        let time = entry.time
        switch entry.event {
        case .network(let device, let link, let isOnline):
            let name = isOnline ? link : "\(link), interface down"
            if let last = links[device]?.indices.last { links[device]?[last].end = time }
            links[device, default: []].append(Span(name: name, start: time, end: end))
        case .stopped(let device):
            stops[device, default: []].append(Span(name: "stopped", start: time, end: end))
        case .started(let device):
            if let last = stops[device]?.indices.last { stops[device]?[last].end = time }
        case .connectionAttempt(let connection, let device):
            connections[connection] = Connection(actor: device, start: time)
        case .connectionEnded(let connection, device: _): connections[connection]?.end = time
        case .request(let id, let actor, let method, let row, let key, _, let connection):
            addRequest(id, actor, method, row, key, connection, time)
        case .named(let id, let row): change(id) { $0.row = row }
        case .requestSent(let id, let bytes): change(id) { $0.requestBytes = bytes }
        case .arrived(let id): change(id) { $0.arrived = time }
        case .serverResponded(let id, let status, let bytes, let revision):
            change(id) { exchange in
                (exchange.responded, exchange.serverStatus) = (time, status)
                (exchange.responseBytes, exchange.revision) = (bytes, revision)
            }
        case .responseReceived(let id, let status):
            change(id) { ($0.received, $0.status) = (time, status) }
        case .failed(let id): change(id) { $0.failed = time }
        case .fault(let index, let id, let point):
            change(id) { $0.faults.append((time, index, point?.rawValue)) }
        default: break
        }
    }

    private mutating func addRequest(
        _ id: Int, _ actor: String, _ method: String, _ row: String?, _ key: String?, _ connection: Int?,
        _ time: Nanoseconds
    ) {
        var attempt = 1
        if let key {
            let name = "\(actor) \(method) \(key)"
            attempt = (attempts[name] ?? 0) + 1
            attempts[name] = attempt
        }
        var connecting: Nanoseconds?
        if let connection, used.insert(connection).inserted { connecting = connections[connection]?.start }
        indices[id] = exchanges.count
        exchanges.append(
            RunExchange(
                number: id, actor: actor, method: method, row: row, connection: connection, connecting: connecting,
                attempt: attempt, link: links[actor]?.last?.name, sent: time))
    }
}
