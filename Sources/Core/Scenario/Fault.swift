public import Determinism
public import LinkModel

extension Scenario {
    /// A fault: an effect on exchanges at one point.
    public struct Fault: Hashable, Sendable {
        /// A point of an exchange.
        public enum Point: String, CaseIterable, Hashable, Sendable {
            /// The client has stored the change and sends the request; nothing has left the device.
            case beforeRequest = "before-request"
            /// A part of the request has been forwarded.
            case midRequest = "mid-request"
            /// The server has the request except its last byte; with a throttle or a response of the scenario, all of it.
            case beforeRequestEnd = "before-request-end"
            /// The server has executed the request, and no byte of the response has been forwarded.
            case beforeResponse = "before-response"
            /// The head of the response has been forwarded.
            case afterResponseHead = "after-response-head"
            /// A part of the response's body has been forwarded.
            case midResponse = "mid-response"
            /// The response is complete, and the client has not stored its result.
            case afterResponse = "after-response"
            /// The client has stored the result: the first commit of its store after the response. An exchange after
            /// which it stores nothing does not reach this point.
            case stored
            /// A point chosen at random for each exchange, from those at which the action is possible.
            case any
        }

        /// The effect on the exchange.
        public enum Action: Hashable, Sendable {
            /// The connection is reset.
            case reset
            /// The connection is closed.
            case close
            /// The connection stays open, and nothing more is delivered.
            case stall
            /// Nothing is delivered for a time.
            case delay(Nanoseconds)
            /// The client of a device is killed; `nil` means the client that sent the request.
            case kill(device: String?)
            /// The rest is delivered at a low rate.
            case throttle(bytesPerSecond: Int)
            /// The client receives this response instead of the server's.
            case respond(Response)
        }

        /// A response given by the scenario.
        public struct Response: Hashable, Sendable {
            /// The status.
            public var status: Int
            /// Header fields, in the order of the file.
            public var headers: [Argument]
            /// The body.
            public var body: String

            /// Creates a response.
            public init(status: Int, headers: [Argument] = [], body: String = "") {
                self.status = status
                self.headers = headers
                self.body = body
            }
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
            device: String?, point: Point = .beforeResponse, action: Action, location: SourceLocation
        ) {
            self.request = request
            self.nth = nth
            self.probability = probability
            self.times = times
            self.device = device
            self.point = point
            self.action = action
            self.location = location
        }
    }
}

extension Scenario.Fault.Action: CustomStringConvertible {
    /// Returns whether the action has a meaning at a point; at ``Scenario/Fault/Point/any`` if it has one at some point.
    public func isPossible(at point: Scenario.Fault.Point) -> Bool {
        switch point {
        case .any, .beforeRequest, .midRequest, .beforeRequestEnd, .beforeResponse: return true
        case .afterResponseHead, .midResponse: return name != "respond"
        case .afterResponse: return name != "respond" && name != "throttle"
        case .stored:
            // The exchange is over: its connection can be ended, or the client.
            switch self {
            case .reset, .close, .kill: return true
            case .stall, .delay, .throttle, .respond: return false
            }
        }
    }

    /// The points at which the action is possible, in order.
    var points: [Scenario.Fault.Point] {
        Scenario.Fault.Point.allCases.filter { $0 != .any && isPossible(at: $0) }
    }

    /// The name of the action in scenario files.
    public var name: String {
        switch self {
        case .reset: "reset"
        case .close: "close"
        case .stall: "stall"
        case .delay: "delay"
        case .kill: "kill"
        case .throttle: "throttle"
        case .respond: "respond"
        }
    }

    public var description: String {
        switch self {
        case .reset, .close, .stall: name
        case .delay(let time): "delay \(TimeFormat.short(time))"
        case .kill(let device): device.map { "kill \($0)" } ?? "kill"
        case .throttle(let rate): "throttle \(rate) B/s"
        case .respond(let reply): "respond \(reply.status)"
        }
    }
}
