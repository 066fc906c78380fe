public import HTTPWire

/// The identifier of an exchange (a request and its response) on one link.
public struct ExchangeID: Hashable, Comparable, Sendable {
    /// The number of requests that were read before.
    public let number: Int

    public static func < (left: ExchangeID, right: ExchangeID) -> Bool { left.number < right.number }
}

/// An event of an exchange.
public enum ExchangeEvent: Sendable {
    /// The request has been read from the client's socket: its head, the first ``ExchangeTracking/bodySampleMax`` bytes
    /// of its body, and its ``ExchangeTracking/subject``, if known. Reported at the end of the request, or at the start
    /// of its response if that comes first.
    case requested(ExchangeID, HTTPRequestHead, body: [UInt8], subject: String?)
    /// The last byte of the request has been written to the server. Not reported if the whole response has been written
    /// to the client by then.
    case requestDelivered(ExchangeID)
    /// The whole response has been read from the server; its last bytes have not entered the link yet.
    case committed(ExchangeID, status: Int)
    /// The last byte of the response has been written to the client.
    case responseDelivered(ExchangeID, status: Int)
    /// The connection ended before the response was delivered.
    case interrupted(ExchangeID)
    /// A fault was injected: the index of its rule.
    case faultInjected(ExchangeID, rule: Int)
    /// The bytes are not HTTP; they pass unchanged and are not tracked.
    case notHTTP(String)
}

extension ExchangeEvent: CustomStringConvertible {
    /// A short text without bodies and header fields.
    public var description: String {
        switch self {
        case .requested(let id, let head, let body, let subject):
            "\(id.number) requested \(head.method) \(subject ?? "?") \(body.count) B"
        case .requestDelivered(let id): "\(id.number) request delivered"
        case .committed(let id, let status): "\(id.number) committed \(status)"
        case .responseDelivered(let id, let status): "\(id.number) response delivered \(status)"
        case .interrupted(let id): "\(id.number) interrupted"
        case .faultInjected(let id, let rule): "\(id.number) fault of rule \(rule)"
        case .notHTTP(let reason): "not HTTP: \(reason)"
        }
    }
}
