//  SyncClient: the live sync client: OfflineEngine, SyncStore and HTTPWire's client machine on sockets.
//
//  Owns: sockets, timers, the order of commit and send.
//
//  Does not own: any decision.
