internal import Determinism
public import Impairment
public import Scenario

/// A fault of a scenario as the link executes it.
public struct FaultInjection: Hashable, Sendable {
    /// The effect on the connection.
    public let action: FaultAction
    /// The point of the exchange.
    public let point: FaultPoint
    /// Whether the point was drawn.
    public let isDrawn: Bool

    /// The longest time for which a connection is held while its client is being killed.
    private static let killMax = Nanoseconds.seconds(10)

    /// Creates the injection of a fault into an exchange of a device; `nil` if a link does not execute it.
    ///
    /// - Parameter point: The point, not `any`.
    public init?(_ fault: Scenario.Fault, at point: Scenario.Fault.Point, of device: String) {
        switch fault.action {
        case .reset: action = .reset
        case .close: action = .close
        case .stall: action = .stall
        case .delay(let time): action = .delay(time)
        case .throttle(let rate): action = .throttle(bytesPerSecond: Int64(rate))
        case .respond(let reply):
            action = .respond(
                FaultResponse(
                    status: reply.status, fields: reply.headers.map { FaultResponse.Field($0.name, $0.value) },
                    body: Array(reply.body.utf8)))
        // A client that is killed does nothing after the point; the killing of another device does not change the
        // exchange.
        case .kill(let killed): action = .report(hold: killed == nil || killed == device ? Self.killMax : .zero)
        }
        guard let point = FaultPoint(rawValue: point.rawValue) else { return nil }
        self.point = point
        isDrawn = fault.point == .any
    }
}

extension Scenario {
    /// Whether a fault may apply before the last byte of a request has reached the server, so that each request must wait
    /// for the decision on its faults.
    public var decidesOnFaultsBeforeRequests: Bool {
        faults.contains { [.beforeRequest, .midRequest, .beforeRequestEnd, .any].contains($0.point) }
    }
}
