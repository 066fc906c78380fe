internal import Determinism
public import Impairment
public import LinkModel

extension Scenario {
    /// A fault: an effect on exchanges at one point.
    public struct Fault: Hashable, Sendable {
        /// A point at which the fault fires.
        public enum Point: Hashable, Sendable {
            /// A point of an exchange.
            case at(FaultPoint)
            /// The client has stored the result: the first commit of its store after the response. An exchange after
            /// which it stores nothing does not reach this point.
            case stored
            /// A point chosen at random for each exchange, from those at which the action is possible.
            case any
        }

        /// The effect on the exchange.
        public enum Action: Hashable, Sendable {
            /// An action of the link.
            case link(FaultAction)
            /// The client of a device is killed; `nil` means the client that sent the request.
            case kill(device: String?)
        }

        /// The requests to match.
        public var request: RequestPattern
        /// The number of the first matching request to which the fault applies, from 1, counted over all devices that
        /// the fault may apply to.
        public var nth: Int
        /// The probability with which the fault applies to each matching request; `nil` if `nth` decides.
        public var probability: Probability?
        /// The number of times that the fault applies. Below the lower bound the verdict is inconclusive; after the
        /// upper bound the fault applies no more.
        public var times: ClosedRange<Int>
        /// The device whose link has the fault; `nil` for any.
        public var device: String?
        /// The point of the exchange.
        public var point: Point
        /// The position of the points `mid-request` and `mid-response`, as ``Impairment/FaultRule/bytes``.
        public var bytes: Int64?
        /// The sockets that the action affects, as ``Impairment/FaultRule/side``.
        public var side: FaultSide?
        /// The effect on the exchange.
        public var action: Action
        /// The fault's location in the file.
        public var location: SourceLocation

        /// Whether the verdict is inconclusive if the fault never fires.
        public var mustFire: Bool { times.lowerBound > 0 }

        /// Returns whether the fault may kill a device's client.
        public func mayKill(_ name: String) -> Bool {
            guard case .kill(let killed) = action else { return false }
            return killed == name || killed == nil && (device == nil || device == name)
        }

        /// Creates a fault.
        public init(
            request: RequestPattern, nth: Int = 1, probability: Probability? = nil, times: ClosedRange<Int> = 1...1,
            device: String?, point: Point = .at(.beforeResponse), bytes: Int64? = nil, side: FaultSide? = nil,
            action: Action, location: SourceLocation
        ) {
            self.request = request
            self.nth = nth
            self.probability = probability
            self.times = times
            self.device = device
            self.point = point
            self.bytes = bytes
            self.side = side
            self.action = action
            self.location = location
        }
    }
}

extension Scenario.Fault {
    /// The reason why the fault is not possible; `nil` if it is.
    public var problem: String? {
        switch (action, point) {
        case (.link(.reset), .stored), (.link(.close), .stored), (.kill, .stored):
            return bytes == nil && side == nil ? nil : "bytes and side have no effect at stored"
        case (.link, .stored): return "after stored the exchange is over; only reset, close and kill have an effect"
        case (.link(let action), .at), (.link(let action), .any):
            if action.isForHTTP2 { return "\(action) is possible on HTTP/2 only, which scenarios do not have" }
            return FaultRule(point: point.ofExchange, bytes: bytes, side: side, action: action).problem
        case (.kill, .at), (.kill, .any):
            return FaultRule(point: point.ofExchange, bytes: bytes, side: side, action: .report()).problem
        }
    }

    /// The points at which the action is possible, in order.
    public var points: [Point] { Point.allCases.filter { $0 != .any && replacing(\.point, $0).problem == nil } }

    /// Returns the fault as the link of a device executes it; `nil` if the link does not.
    ///
    /// - Parameters:
    ///   - index: The number of the fault in the scenario.
    ///   - point: The point, not ``Point/any``.
    public func onLink(_ index: Int, at point: Point, of device: String) -> ExchangeFault? {
        guard case .at(let found) = point else { return nil }
        let action =
            switch action {
            case .link(let action): action
            // A client that is killed does nothing after the point; the killing of another device does not change the
            // exchange.
            case .kill(let killed): FaultAction.report(hold: killed == nil || killed == device ? Self.killMax : .zero)
            }
        return ExchangeFault(
            rule: index, point: found, action: action, bytes: bytes, side: side, isDrawn: self.point == .any)
    }

    /// The longest time for which a connection is held while its client is being killed.
    private static let killMax = Nanoseconds.seconds(10)
}

extension Scenario.Fault.Point: RawRepresentable, CaseIterable {
    public static let allCases = FaultPoint.allCases.map { Self.at($0) } + [.stored, .any]

    /// The name of the point in scenario files.
    public var rawValue: String {
        switch self {
        case .at(let point): point.rawValue
        case .stored: "stored"
        case .any: "any"
        }
    }

    public init?(rawValue: String) {
        guard let point = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = point
    }

    /// The point of an exchange, as in a rule; `nil` for the others.
    var ofExchange: FaultPoint? { if case .at(let point) = self { point } else { nil } }
}

extension Scenario.Fault.Action: CustomStringConvertible {
    /// The name of the action in scenario files.
    public var name: String {
        switch self {
        case .kill: "kill"
        case .link(.respond): "respond"
        case .link(let action): String(action.description.prefix { $0 != " " })
        }
    }

    /// The response of the action in place of the server's; `nil` if it has none.
    public var response: FaultResponse? { if case .link(.respond(let response)) = self { response } else { nil } }

    public var description: String {
        switch self {
        case .kill(let device): device.map { "kill \($0)" } ?? "kill"
        case .link(.delay(let time)): "delay \(TimeFormat.short(time))"
        case .link(.throttle(let rate)): "throttle \(rate) B/s"
        case .link(.respond(let response)): "respond \(response.status)"
        case .link(let action): action.description
        }
    }
}

extension Scenario {
    /// Whether a fault may apply before the last byte of a request has reached the server, so that each request must wait
    /// for the decision on its faults.
    public var decidesOnFaultsBeforeRequests: Bool {
        faults.contains { $0.point == .any || $0.point.ofExchange.map { $0 <= .beforeRequestEnd } ?? false }
    }
}
