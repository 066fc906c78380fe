public import Impairment
public import ScenarioModel

/// A fault of a scenario as the link executes it.
public struct FaultInjection: Hashable, Sendable {
    /// The effect on the connection.
    public let action: FaultAction
    /// The point of the exchange.
    public let point: FaultPoint

    /// Creates the injection of a fault; `nil` if a link cannot execute it.
    public init?(_ fault: Scenario.Fault) {
        switch fault.action {
        case .cut: action = .abort
        case .close: action = .close
        case .mute: action = .mute
        case .hold(let time): action = .hold(time)
        case .trickle(let rate): action = .trickle(bytesPerSecond: Int64(rate))
        case .reply(let reply):
            action = .reply(
                FaultReply(
                    status: reply.status, fields: reply.headers.map { FaultReply.Field($0.name, $0.value) },
                    body: Array(reply.body.utf8)))
        case .kill: return nil
        }
        guard let point = FaultPoint(rawValue: fault.point.rawValue) else { return nil }
        self.point = point
    }
}
