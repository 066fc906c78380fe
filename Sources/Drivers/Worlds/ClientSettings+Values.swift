public import Client
internal import Determinism
public import Scenario
public import Wire

/// The settings of a scenario as values of the client.
extension SyncPolicy {
    /// Creates the published policy with the changes of a scenario.
    public init(_ settings: Scenario.ClientSettings) {
        self.init()
        if let delay = settings.firstDelay { firstDelay = delay }
        if let delay = settings.longestDelay { longestDelay = delay }
        if let interval = settings.poll { poll = interval }
        if let bytes = settings.largeBytes { largeBytes = bytes }
    }
}

extension HTTPTimeouts {
    /// The number of timeouts without progress in the total time of a small exchange.
    private static let partsMax: Int64 = 3

    /// Creates the published timeouts with the changes of a scenario.
    public init(_ settings: Scenario.ClientSettings) {
        self.init()
        guard let timeout = settings.timeout else { return }
        connect = min(connect, timeout)
        upload = timeout
        firstByte = timeout
        idle = min(idle, timeout)
        exchange = Nanoseconds(timeout.count.multipliedSaturating(by: Self.partsMax))
    }
}
