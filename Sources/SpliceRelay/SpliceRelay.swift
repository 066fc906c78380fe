//  SpliceRelay: TCP connections forwarded from socket to socket by epoll and splice(2), on threads of its own.
//
//  Owns: relay threads; accepting, dialling, forwarding and closing while no conditions apply.
//
//  Does not own: any decision about when that is so, proxy loops, name lookup, logging (ProxyServer), conditions
//  (Impairment, LinkModel). TLS, SOCKS5 and UDP do not pass here.
//
//  The seam: `Relay.perform` and `Relay.submit` run a closure on a relay thread, which calls `RelayLoop`. In: a listening
//  socket and a `RelayPortConfiguration`. Out: `RelayedTraffic`, `RelayedConnectionStatus`, and after `freeze` or `close` each
//  connection as a `DetachedConnection` with the bytes that the relay still held. Linux only; elsewhere `Relay.all` is empty.
