internal import Determinism
internal import Impairment
internal import Scenario
internal import Wire

/// A reader of what responses say about the effects of writes, from the events of the exchanges of a link
/// (``ExchangeTracking/samplesResponses``). A value without a clock.
struct WriteResultReader: Sendable {
    private struct Exchange {
        let path: [UInt8]
        var head: HTTPResponseHead?
        var body: [UInt8]?
    }

    private var open: [ExchangeID: Exchange] = [:]

    /// The header fields with which servers say that a response is that of an earlier request, in lowercase.
    static let replayFields = ["idempotency-replayed", "idempotent-replayed"]
    /// The keys of JSON objects that identify a record, in the order in which they are searched.
    static let recordKeys = ["id", "uuid", "_id"]

    /// Creates a reader.
    init() {}

    /// Takes the next event of an exchange; returns what the response says, once it is complete.
    mutating func read(_ event: ExchangeEvent) -> WriteResult? {
        switch event {
        case .requested(let id, let head, _, _):
            let path = Array(head.target.utf8.prefix { $0 != UInt8(ascii: "?") })
            open[id] = Exchange(path: path)
        case .responseStarted(let id, let head): open[id]?.head = head
        case .responseSampled(let id, let body): open[id]?.body = body
        case .responseRead(let id, _, let bytes):
            guard let exchange = open.removeValue(forKey: id), let head = exchange.head, let body = exchange.body
            else { return nil }
            return Self.result(path: exchange.path, head, body, isComplete: bytes == body.count)
        // The rest of a response may be read after its stream has been reset for the client.
        case .interrupted(let id): if open[id]?.head == nil { open[id] = nil }
        case .responseDelivered(let id, _, _), .protocolSwitched(let id): open[id] = nil
        case .requestStarted, .requestRead, .requestDelivered, .faultInjected, .faultMissed, .pings, .notHTTP, .tls,
            .handshakeFault, .streamFault:
            break
        }
        return nil
    }

    /// Returns what a response says.
    ///
    /// - Parameters:
    ///   - path: The path of the request.
    ///   - body: The body, or the first bytes of a long one.
    ///   - isComplete: Whether it is the whole body.
    static func result(path: [UInt8], _ head: HTTPResponseHead, _ body: [UInt8], isComplete: Bool) -> WriteResult {
        func field(_ name: String) -> String? { head.fieldLines.first { $0.name.lowercased() == name }?.value }
        var result = WriteResult(target: FNV1a.digest(path))
        for name in replayFields {
            switch field(name)?.lowercased() {
            case "true"?, "1"?, "?1"?: result.isReplayed = true
            case "false"?, "0"?, "?0"?: result.isReplayed = false
            default: break
            }
        }
        let isPlain = (field("content-encoding") ?? "identity").lowercased() == "identity"
        if isComplete && isPlain && !body.isEmpty { result.body = FNV1a.digest(body) }
        let named = isComplete && isPlain ? record(in: body) : nil
        if let record = named ?? field("location").flatMap(lastSegment) {
            let segments = path.split(separator: UInt8(ascii: "/"))
            if !segments.contains(where: { $0.elementsEqual(record.utf8) }) {
                result.record = FNV1a.digest(record.utf8)
            }
        }
        return result
    }

    /// Returns the identifier of the record that a JSON object is, or that its only member is.
    private static func record(in body: [UInt8]) -> String? {
        guard let object = JSONText.parse(body)?.object else { return nil }
        if let found = identifier(of: object) { return found }
        let objects = object.compactMap { $0.value.object }
        return objects.count == 1 ? identifier(of: objects[0]) : nil
    }

    private static func identifier(of object: JSONObject) -> String? {
        for key in recordKeys {
            switch object[key] {
            case .text(let text)? where !text.isEmpty: return text
            case .integer(let number)?: return "\(number)"
            default: break
            }
        }
        return nil
    }

    /// Returns the last segment of the path of a URL; `nil` if there is none.
    private static func lastSegment(_ url: String) -> String? {
        url.prefix { $0 != "?" && $0 != "#" }.split(separator: "/").last.map(String.init)
    }
}
