//  Proxy/Relay: TCP connections forwarded from socket to socket by epoll and splice(2), on threads of its own.
//
//  Owns: relay threads; accepting, the negotiation of tunnels, dialling, forwarding and closing while no conditions
//  apply.
//
//  Does not own: the decision whether conditions apply, the detection of proxy loops, name lookup, logging
//  (Proxy), conditions (Impairment, LinkModel). The relays do not interpret the bytes of an
//  established connection.
//
//  Interface: `Relay.perform` and `Relay.submit` run a closure on a relay thread, which calls `RelayLoop`. Inputs: a
//  listening socket and a `RelayPortConfiguration`. Outputs: `RelayedTraffic`, `RelayedConnectionStatus`, and after
//  `freeze` or `close` each connection as a `DetachedConnection` with the bytes that the relay still held. Linux only;
//  elsewhere `Relay.all` is empty.
