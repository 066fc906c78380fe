// A renamed name is not accepted: the compiler's error names the new one.

extension Network {
    /// Renamed.
    @available(*, unavailable, renamed: "disconnect()")
    public func cut() async { await disconnect() }
}

extension NetworkProfile {
    /// Renamed.
    @available(*, unavailable, renamed: "offline")
    public static var refuse: NetworkProfile { .offline }
    /// Renamed.
    @available(*, unavailable, renamed: "uplinkLoss")
    public static var upDead: NetworkProfile { .uplinkLoss }
    /// Renamed.
    @available(*, unavailable, renamed: "downlinkLoss")
    public static var downDead: NetworkProfile { .downlinkLoss }
}
