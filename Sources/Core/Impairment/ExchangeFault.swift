/// A fault of one exchange: of a rule that has matched its request, or of an observer that decides on each request.
public struct ExchangeFault: Hashable, Sendable {
    /// The number of the rule, which events of the fault report.
    public var rule: Int
    /// The point.
    public var point: FaultPoint
    /// The action.
    public var action: FaultAction
    /// The position of ``FaultPoint/midRequest`` and ``FaultPoint/midResponse``, as ``FaultRule/bytes``.
    public var bytes: Int64?
    /// The sockets that the action affects, as ``FaultRule/side``.
    public var side: FaultSide?
    /// Whether the point was drawn: if the response has no body, ``FaultPoint/afterResponseHead`` replaces
    /// ``FaultPoint/midResponse``.
    public var isDrawn: Bool
    /// Whether the fault was injected by a call, not by a rule of the link.
    var isInjected = false

    /// Creates a fault.
    public init(
        rule: Int, point: FaultPoint = .beforeResponse, action: FaultAction, bytes: Int64? = nil,
        side: FaultSide? = nil, isDrawn: Bool = false
    ) {
        self.rule = rule
        self.point = point
        self.action = action
        self.bytes = bytes
        self.side = side
        self.isDrawn = isDrawn
    }

    /// Creates the fault of a rule at a point.
    init(_ rule: FaultRule, number: Int, at point: FaultPoint) {
        self.init(
            rule: number, point: point, action: rule.action, bytes: rule.bytes, side: rule.side,
            isDrawn: rule.point == nil)
    }
}
