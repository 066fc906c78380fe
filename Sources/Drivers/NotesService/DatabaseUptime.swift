/// The total time for which servers have had a database open, in milliseconds. Retention and token lifetimes are
/// measured by it.
///
/// The wall clock may jump by years: a user sets it, a battery fails, a time server corrects it. Nothing may expire for
/// that reason. The uptime therefore counts by a monotonic clock while a server runs, and is saved in the database.
/// Token lifetimes also include the time between two runs, by the wall clock: a tombstone kept too long does no harm,
/// but a token does.
struct DatabaseUptime: Hashable, Sendable {
    /// The time with a running server.
    let uptime: Int
    /// The time by which tokens expire: the uptime and the time between runs.
    let tokenTime: Int
    /// The wall clock at this time.
    let wallTime: Int

    /// Creates the time at the start of a run.
    ///
    /// - Parameters:
    ///   - saved: The time saved by the previous run, if there was one.
    ///   - wallTime: Milliseconds since 1970.
    init(after saved: DatabaseUptime?, wallTime: Int) {
        uptime = saved?.uptime ?? 0
        // If the clock was set back, the time between the runs counts as 0.
        tokenTime = (saved?.tokenTime ?? 0) + (saved.map { max(0, wallTime - $0.wallTime) } ?? 0)
        self.wallTime = wallTime
    }

    init(uptime: Int, tokenTime: Int, wallTime: Int) {
        self.uptime = uptime
        self.tokenTime = tokenTime
        self.wallTime = wallTime
    }

    /// Returns the time a number of milliseconds later.
    func advanced(by elapsed: Int, wallTime: Int) -> DatabaseUptime {
        DatabaseUptime(uptime: uptime + elapsed, tokenTime: tokenTime + elapsed, wallTime: wallTime)
    }
}
