public import Determinism
public import LinkModel

extension Scenario {
    /// A fault: an effect on exchanges at one point.
    public struct Fault: Hashable, Sendable {
        /// A point of an exchange.
        public enum Point: String, CaseIterable, Hashable, Sendable {
            /// The client has stored the change, and nothing is sent.
            case queued
            /// A part of the request has been forwarded.
            case partlySent = "partly-sent"
            /// The request is complete, and the server has not executed it.
            case received
            /// The server has executed the request, and no byte of the response has been forwarded.
            case committed
            /// The head of the response has been forwarded.
            case answerStarted = "answer-started"
            /// A part of the response's body has been forwarded.
            case partlyAnswered = "partly-answered"
            /// The response is complete, and the client has not stored its result.
            case answered
            /// The client has stored the result.
            case stored
            /// A point chosen at random for each exchange.
            case any
        }

        /// The effect on the exchange.
        public enum Action: Hashable, Sendable {
            /// The connection is reset.
            case cut
            /// The connection is closed.
            case close
            /// The connection stays open, and nothing more is delivered.
            case mute
            /// Nothing is delivered for a time.
            case hold(Nanoseconds)
            /// The client of a device is killed.
            case kill(device: String)
            /// The rest is delivered at a low rate.
            case trickle(bytesPerSecond: Int)
            /// The client receives this response instead of the server's.
            case reply(Reply)
        }

        /// A response given by the scenario.
        public struct Reply: Hashable, Sendable {
            /// The status.
            public let status: Int
            /// Header fields, in the order of the file.
            public let headers: [Argument]
            /// The body.
            public let body: String

            /// Creates a response.
            public init(status: Int, headers: [Argument] = [], body: String = "") {
                self.status = status
                self.headers = headers
                self.body = body
            }
        }

        /// The requests to match.
        public let request: RequestPattern
        /// The number of the first matching request to which the fault applies, from 1, counted over all devices that
        /// the fault may apply to.
        public let nth: Int
        /// The probability with which the fault applies to each matching request; `nil` if `nth` decides.
        public let chance: Probability?
        /// The number of times that the fault applies. Below the lower bound the verdict is inconclusive; after the
        /// upper bound the fault applies no more.
        public let times: ClosedRange<Int>
        /// The device whose link has the fault; `nil` for any.
        public let device: String?
        /// The point of the exchange.
        public let point: Point
        /// The effect on the exchange.
        public let action: Action
        /// The fault's location in the file.
        public let location: SourceLocation

        /// Whether the verdict is inconclusive if the fault never fires.
        public var mustFire: Bool { times.lowerBound > 0 }

        /// Creates a fault.
        public init(
            request: RequestPattern, nth: Int = 1, chance: Probability? = nil, times: ClosedRange<Int> = 1...1,
            device: String?, point: Point = .committed, action: Action, location: SourceLocation
        ) {
            self.request = request
            self.nth = nth
            self.chance = chance
            self.times = times
            self.device = device
            self.point = point
            self.action = action
            self.location = location
        }
    }
}

extension Scenario.Fault.Action: CustomStringConvertible {
    /// The name of the action in scenario files.
    public var name: String {
        switch self {
        case .cut: "cut"
        case .close: "close"
        case .mute: "mute"
        case .hold: "hold"
        case .kill: "kill"
        case .trickle: "trickle"
        case .reply: "reply"
        }
    }

    public var description: String {
        switch self {
        case .cut, .close, .mute: name
        case .hold(let time): "hold \(TimeFormat.short(time))"
        case .kill(let device): "kill \(device)"
        case .trickle(let rate): "trickle \(rate) B/s"
        case .reply(let reply): "reply \(reply.status)"
        }
    }
}
