//  SyncEngine: the sync client's brain.
//
//  Owns: the outbox, what is sent when, what an answer means, conflicts, retry policy.
//
//  Does not own: sockets, SQLite, clocks, chance: facts, the time and a seed go in, commits and requests come out.
