/// How long a database has been served, in milliseconds: what retention and tokens are counted by.
///
/// The wall clock may be set, ten years ahead or back, by its owner, a dead battery or a time server; nothing may be forgotten
/// for that. So time counts while a server runs, by a clock that never jumps, and is added up in the file. Time between two
/// runs counts for tokens only, by the wall clock: forgetting a tombstone too late harms nobody, a token that outlives its
/// time may.
struct DatabaseUptime: Hashable, Sendable {
    /// Time that a server has run.
    let served: Int
    /// Time by which tokens expire: that, and the time between runs.
    let tokens: Int
    /// What the wall clock showed then.
    let wall: Int

    static let zero = DatabaseUptime(served: 0, tokens: 0, wall: 0)

    /// The time at the start of a run.
    ///
    /// - Parameters:
    ///   - saved: What the last run has left, `nil` for none.
    ///   - wall: Milliseconds since 1970.
    init(after saved: DatabaseUptime?, wall: Int) {
        served = saved?.served ?? 0
        // A clock that was set back says nothing of how long it was.
        tokens = (saved?.tokens ?? 0) + (saved.map { max(0, wall - $0.wall) } ?? 0)
        self.wall = wall
    }

    init(served: Int, tokens: Int, wall: Int) {
        self.served = served
        self.tokens = tokens
        self.wall = wall
    }

    /// The time so many milliseconds later.
    func later(by elapsed: Int, wall: Int) -> DatabaseUptime {
        DatabaseUptime(served: served + elapsed, tokens: tokens + elapsed, wall: wall)
    }
}
