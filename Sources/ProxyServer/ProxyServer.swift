//  ProxyServer: the thin shell of sockets around the pure machines.
//
//  Owns: the listener, the sessions (two sockets each), dialling, the link loop with its one timer, limits on
//  connections, starting and stopping.
//
//  Does not own: any decision about bytes or time (Impairment, LinkModel). Everything of a proxy happens on one
//  event loop, from the accept to the last FIN, so nothing here needs a lock.
