//  ProxyServer: the thin shell of sockets around the pure machines.
//
//  Owns: the listener, the sessions (two sockets each), dialling, the link loop with its one timer, limits on
//  connections, starting and stopping.
//
//  StraightPath/ carries what nothing is done to, on a thread of its own.
//
//  Does not own: any decision about bytes or time (Impairment, LinkModel). Everything else of a proxy happens on one
//  event loop, so nothing here needs a lock.
