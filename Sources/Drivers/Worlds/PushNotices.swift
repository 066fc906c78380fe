public import Scenario

/// The push notices of a run: if the service has a result of a form and the app has ended before it has received the result,
/// the device shows a notice until the app starts. A value that follows from the events of the run.
public struct PushNotices: Sendable {
    /// An operation of a device's app.
    private struct Operation: Hashable {
        let device: String
        let id: String
    }

    /// The field of a device's screen with a notice.
    public static let field = "push-notice"

    private let text: @Sendable (_ operation: String) -> String?
    /// The operations of requests without a received response.
    private var requests: [Int: Operation] = [:]
    /// The operations that have a result which the app has not received, in the order of the results.
    private var results: [Operation] = []
    private var stopped: Set<String> = []

    /// Creates the notices of services.
    ///
    /// - Parameter text: Returns the text about the result of an operation; `nil` if there is none.
    public init(_ text: @escaping @Sendable (_ operation: String) -> String?) { self.text = text }

    /// Applies an event. Returns the events that follow from it: notices, and the states of devices that show them.
    public mutating func apply(_ event: History.Event, _ recorder: inout HistoryRecorder) -> [History.Event] {
        switch event {
        case .request(let id, let actor, "POST", _, let key?, _, _):
            requests[id] = Operation(device: actor, id: Self.unquoted(key))
        case .serverResponded(let id, _, _, _):
            guard let operation = requests[id], text(operation.id) != nil else { break }
            if !results.contains(operation) { results.append(operation) }
            if stopped.contains(operation.device) { return notices(of: operation.device, &recorder) }
        case .responseReceived(let id, _):
            guard let operation = requests.removeValue(forKey: id) else { break }
            results.removeAll { $0 == operation }
        case .stopped(let device):
            stopped.insert(device)
            return notices(of: device, &recorder)
        case .started(let device): stopped.remove(device)
        default: break
        }
        return []
    }

    private mutating func notices(of device: String, _ recorder: inout HistoryRecorder) -> [History.Event] {
        let found = results.filter { $0.device == device }.compactMap { text($0.id) }
        results.removeAll { $0.device == device }
        return found.flatMap { text in
            [.notice(actor: device, .pushed(text)), recorder.closedView(adding: "\(Self.field)=\(text)", of: device)]
                .compactMap(\.self)
        }
    }

    /// Returns the value of an Idempotency-Key without quotes.
    private static func unquoted(_ key: String) -> String {
        key.utf8.count >= 2 && key.hasPrefix("\"") && key.hasSuffix("\"") ? String(key.dropFirst().dropLast()) : key
    }
}
