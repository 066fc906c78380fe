public import Determinism

/// The client's belief about its connectivity: the state of the interface, and the failures of requests.
///
/// Offline is a derived state: the interface is down, or several requests in a row have failed over some time. Then only
/// probes are sent, with growing delays, until one gets a response.
public struct ConnectivityEstimate: Sendable {
    /// The number of failures in a row that may mean that the device is offline.
    public static let failuresMin = 3
    /// The time that these failures must span.
    public static let spanMin = Nanoseconds.seconds(10)
    /// The delay before the first probe; further ones double up to ``probeMax``.
    public static let probeFirst = Nanoseconds.seconds(5)
    /// The longest delay between probes. Each delay is changed at random by up to 20 %: this one is reduced, the others are
    /// increased.
    public static let probeMax = Nanoseconds.seconds(60)

    private var isInterfaceUp = true
    private var failures = 0
    private var firstFailure: Instant?
    private var probeDelay = Self.probeFirst
    /// The time of the next probe; `nil` unless the device is offline by failures, and while a probe is in flight.
    public private(set) var probeAt: Instant?
    private var isUnreachable = false

    /// Creates the belief before the first exchange.
    public init(isInterfaceUp: Bool = true) { self.isInterfaceUp = isInterfaceUp }

    /// Whether the device is offline.
    public var isOffline: Bool { !isInterfaceUp || isUnreachable }

    /// Whether only probes may be sent.
    public var needsProbe: Bool { isInterfaceUp && isUnreachable }

    /// The belief as an app publishes it.
    public enum Belief: Hashable, Sendable {
        /// Requests are expected to succeed.
        case online
        /// The interface is down.
        case interfaceDown
        /// The server cannot be reached.
        case unreachable
    }

    /// The belief.
    public var belief: Belief { !isInterfaceUp ? .interfaceDown : isUnreachable ? .unreachable : .online }

    /// Records the state of the interface. One that has come up is taken for a connection until requests fail.
    public mutating func interfaceChanged(isUp: Bool) {
        let hasComeUp = isUp && !isInterfaceUp
        isInterfaceUp = isUp
        if hasComeUp { reset() }
    }

    /// Records a response of the server.
    public mutating func responseReceived() { reset() }

    /// Records a request that has failed without a response of the server.
    public mutating func requestFailed(at now: Instant, random: inout RandomStream) {
        failures += 1
        let first = firstFailure ?? now
        firstFailure = first
        if isUnreachable {
            scheduleProbe(at: now, &random)
        } else if failures >= Self.failuresMin, now - first >= Self.spanMin {
            isUnreachable = true
            scheduleProbe(at: now, &random)
        }
    }

    /// Records that a probe was sent.
    public mutating func probeSent() { probeAt = nil }

    /// Makes the next probe due: the user or the system gives a reason.
    public mutating func hurryProbe(at now: Instant) { if let probeAt { self.probeAt = min(probeAt, now) } }

    private mutating func scheduleProbe(at now: Instant, _ random: inout RandomStream) {
        let change = Nanoseconds(random.integer(below: probeDelay.count / 5 + 1))
        probeAt = now + (probeDelay < Self.probeMax ? probeDelay + change : probeDelay - change)
        probeDelay = min(Self.probeMax, probeDelay + probeDelay)
    }

    private mutating func reset() {
        failures = 0
        firstFailure = nil
        probeDelay = Self.probeFirst
        probeAt = nil
        isUnreachable = false
    }
}
