//  SyncClient: the live sync client: SyncEngine, SyncStore and HTTPWire's client machine on sockets.
//
//  Owns: sockets, timers, the order of commit and send.
//
//  Does not own: any decision.
