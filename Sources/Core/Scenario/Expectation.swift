public import Determinism

/// A condition that a run must meet.
public struct Expectation: Sendable {
    /// The kind of expectation.
    public enum Kind: Sendable {
        /// A condition on requests.
        case traffic(Traffic)
        /// A condition on a device that holds at every moment; the note may appear later, but not vanish.
        case always(device: String, StateCondition)
        /// A condition on a device that holds at some moment; otherwise the verdict is inconclusive.
        case sometimes(device: String, StateCondition)
        /// A fault that is applied at least once; otherwise the verdict is inconclusive.
        case sometimesFault(FaultPattern)
        /// Requests that are seen at least once; otherwise the verdict is inconclusive.
        case sometimesTraffic(Traffic)
        /// A condition on a device that holds at some moment of a window.
        case eventually(device: String, StateCondition, Window)
        /// Values of a note on the server at the end.
        case serverRow(row: String, revision: Int?, title: String?, text: String?)
        /// The number of notes on the server at the end.
        case serverCount(Int)
        /// A condition on a device at the end.
        case finally(device: String, StateCondition)
        /// Devices, or devices and `server`, with equal notes at the end.
        case agree([String])
        /// Bounds of a metric.
        case threshold(Threshold)
    }

    /// A pattern of faults; `nil` matches all.
    public struct FaultPattern: Hashable, Sendable {
        /// The point.
        public var point: Scenario.Fault.Point?
        /// The requests.
        public var request: RequestPattern?

        /// Creates a pattern.
        public init(point: Scenario.Fault.Point?, request: RequestPattern?) {
            self.point = point
            self.request = request
        }
    }

    /// The window of an `eventually` expectation. It ends with the script phase at the latest.
    public enum Window: Hashable, Sendable {
        /// From the start to a time.
        case by(Nanoseconds)
        /// From a mark, for a duration. The state when the mark is set counts, an earlier one does not.
        case after(String, within: Nanoseconds)
    }

    /// The kind of expectation.
    public var kind: Kind
    /// The expectation's location in the file.
    public var location: SourceLocation

    /// Creates an expectation.
    public init(_ kind: Kind, location: SourceLocation) {
        self.kind = kind
        self.location = location
    }

    /// A condition on the requests that match a pattern.
    public struct Traffic: Sendable {
        /// The point at which requests are counted.
        ///
        /// A request that did not reach the server, because of the network, a captive portal or a fault, is not seen by
        /// the server, whatever is expected of the requests.
        public enum Seen: String, CaseIterable, Sendable { case server, proxy }
        /// A number of requests.
        public enum Count: Hashable, Sendable {
            /// A number within the range.
            case range(ClosedRange<Int>)
            /// At most the number of attempts that the retry policy allows in each outage of the window, and at least
            /// `min` attempts in the window. An attempt is an attempt to connect, or a request on an open connection.
            case budget(min: Int = 0)
        }
        /// The result of an exchange, as listed under the key `responses` of scenario files.
        public enum Response: Hashable, Sendable, CustomStringConvertible {
            /// The client received a response with this status.
            case status(Int)
            /// The client received a response with a status of this class: 2 for 2xx (RFC 9110, 15).
            case statusClass(Int)
            /// The server responded, and the client did not receive the response.
            case lost
            /// The server did not respond: the request did not reach it, or the connection ended before its response.
            case none

            public var description: String {
                switch self {
                case .status(let status): "\(status)"
                case .statusClass(let digit): "\(digit)xx"
                case .lost: "lost"
                case .none: "none"
                }
            }
        }
        /// A part of the run in which requests are counted.
        public enum During: Hashable, Sendable, CustomStringConvertible {
            /// While an entry of the network with `flap` is in effect. For the requests at the server their arrival
            /// counts, for those at the proxy the time at which they were sent. A writer has no link.
            case flap
            /// While a link with this name is in effect.
            case link(String)

            public var description: String {
                switch self {
                case .flap: "flap"
                case .link(let name): name
                }
            }
        }
        /// A property that all matching requests share.
        public enum Sameness: String, CaseIterable, Sendable { case body, key = "idempotency-key" }

        /// The pattern of the requests.
        public var request: RequestPattern
        /// The device or writer; `nil` for any.
        public var from: String?
        /// The point at which requests are counted.
        public var seen: Seen
        /// The window; `nil` for the script phase. A mark stands for the start of its step's action. The window ends with
        /// the script phase at the latest, unless it ends with the run (``TimeReference/end``).
        public var between: (from: TimeReference, to: TimeReference)?
        /// The expected number.
        public var count: Count?
        /// The expected results: those of all matching requests, in order. That requests are seen at least once
        /// (``Kind/sometimesTraffic(_:)``) needs these results in this order; others may lie between.
        public var responses: [Response]?
        /// The properties that all requests must share.
        public var same: [Sameness]
        /// The part of the run; `nil` for the whole.
        public var during: During?
        /// Requests whose first occurrences must be in this order. A pattern that occurs again stands for its next
        /// request.
        public var order: [RequestPattern]?
        /// The greatest number of requests with which the server has executed a write once more, as its responses tell
        /// (``WriteEffects``). Without a window, those of the whole run.
        public var duplicates: Int?
        /// The number of bytes of the responses' bodies, without heads and the framing of chunks. A response counts when
        /// its last byte has entered the link, whether or not the client receives it.
        public var bytesDown: ClosedRange<Int>?
        /// The number of bytes of the requests' bodies, counted in the same way.
        public var bytesUp: ClosedRange<Int>?
        /// The number of attempts of the devices: attempts to connect, and requests on connections that were open already.
        public var attempts: ClosedRange<Int>?

        /// Creates a condition on requests.
        public init(
            request: RequestPattern, from: String?, seen: Seen, between: (from: TimeReference, to: TimeReference)?,
            count: Count?, responses: [Response]?, same: [Sameness], during: During? = nil,
            order: [RequestPattern]? = nil, duplicates: Int? = nil, bytesDown: ClosedRange<Int>? = nil,
            bytesUp: ClosedRange<Int>? = nil, attempts: ClosedRange<Int>? = nil
        ) {
            self.request = request
            self.from = from
            self.seen = seen
            self.between = between
            self.count = count
            self.responses = responses
            self.same = same
            self.during = during
            self.order = order
            self.duplicates = duplicates
            self.bytesDown = bytesDown
            self.bytesUp = bytesUp
            self.attempts = attempts
        }
    }
}

extension Expectation.Traffic: CustomStringConvertible {
    /// The condition in one line, with the keys of scenario files.
    public var description: String {
        var text = "\(request)"
        if let from { text += " from \(from)" }
        if seen == .proxy { text += " at the proxy" }
        if let between { text += " between \(between.from) and \(between.to)" }
        if let during { text += " during \(during)" }
        switch count {
        case .range(let range)?: text += ", " + Self.text(range, "count")
        case .budget(let least)?: text += (least > 0 ? ", at least \(least)" : "") + ", within the retry budget"
        case nil: break
        }
        if let attempts { text += ", " + Self.text(attempts, "attempts") }
        if let responses { text += ", responses \(responses.map(\.description).joined(separator: " "))" }
        if !same.isEmpty { text += ", same \(same.map(\.rawValue).joined(separator: " and "))" }
        if let order { text += ", order \(order.map(\.description).joined(separator: ", "))" }
        if let duplicates { text += ", duplicates \(duplicates)" }
        if let bytesDown { text += ", " + Self.text(bytesDown, "bytes down") }
        if let bytesUp { text += ", " + Self.text(bytesUp, "bytes up") }
        return text
    }

    private static func text(_ range: ClosedRange<Int>, _ name: String) -> String {
        if range.lowerBound == range.upperBound { return "\(name) \(range.lowerBound)" }
        if range.upperBound == .max { return "\(name == "count" ? "" : name + " ")at least \(range.lowerBound)" }
        return "\(name) \(range.lowerBound) to \(range.upperBound)"
    }
}

extension Expectation: CustomStringConvertible {
    /// The expectation in one line, with the keys of scenario files.
    public var description: String {
        switch kind {
        case .traffic(let traffic): return "traffic: \(traffic)"
        case .sometimesTraffic(let traffic): return "sometimes: \(traffic)"
        case .sometimesFault(let pattern):
            return "sometimes: fault" + (pattern.point.map { " at \($0.rawValue)" } ?? "")
                + (pattern.request.map { " of \($0)" } ?? "")
        case .threshold(let threshold): return "thresholds: \(threshold)"
        case .always(let device, let condition): return "always: \(device) \(condition)"
        case .sometimes(let device, let condition): return "sometimes: \(device) \(condition)"
        case .eventually(let device, let condition, .by(let time)):
            return "eventually: \(device) \(condition), by \(TimeFormat.seconds(time))"
        case .eventually(let device, let condition, .after(let mark, let within)):
            return "eventually: \(device) \(condition), within \(TimeFormat.seconds(within)) of \(mark)"
        case .serverRow(let row, let revision, let title, let text):
            var parts: [String] = []
            if let revision { parts.append("revision \(revision)") }
            if let title { parts.append("title \(Quoting.quoted(title))") }
            if let text { parts.append("text \(Quoting.quoted(text))") }
            return "finally: server \(row) \(parts.joined(separator: ", "))"
        case .serverCount(let count): return "finally: server has \(count) \(count == 1 ? "note" : "notes")"
        case .finally(let device, let condition): return "finally: \(device) \(condition)"
        case .agree(let names): return "finally: \(names.joined(separator: ", ")) agree"
        }
    }
}
