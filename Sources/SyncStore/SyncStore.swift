//  SyncStore: the sync client's durable memory, a SQLite file.
//
//  Owns: the schema, commits that are whole or not at all.
//
//  Does not own: what the rows mean (SyncEngine).
