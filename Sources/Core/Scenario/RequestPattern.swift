public import Determinism

/// A pattern of requests by method and note: `PUT n1`, `POST any`, `any`.
public struct RequestPattern: Hashable, Sendable, CustomStringConvertible {
    /// The method; `nil` matches any.
    public var method: String?
    /// The note; `nil` matches any.
    public var row: String?

    /// Creates a pattern.
    public init(method: String?, row: String?) {
        self.method = method
        self.row = row
    }

    /// The pattern that matches all requests.
    public static let any = RequestPattern(method: nil, row: nil)

    public var description: String {
        guard let method else { return row ?? "any" }
        return "\(method) \(row ?? "any")"
    }
}

/// A time, the time of a mark, or the end of the run.
public enum TimeReference: Hashable, Sendable, CustomStringConvertible {
    /// The name of the end of the run in scenario files.
    public static let endName = "finally"

    /// A time from the scenario's start.
    case time(Nanoseconds)
    /// The time at which the mark was set.
    case mark(String)
    /// The end of the run, after the restore phase; the end of a window of requests only.
    case end

    public var description: String {
        switch self {
        case .time(let time): TimeFormat.seconds(time)
        case .mark(let name): name
        case .end: Self.endName
        }
    }
}
