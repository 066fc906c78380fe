//  Proxy: the SwiftNIO driver of a proxy.
//
//  Owns: listening sockets, sessions (two sockets each), dials to the upstream, name lookup, the timers of the link
//  drivers, limits on connections and work per turn, start and stop.
//
//  FastPath moves connections without conditions to the relays of Proxy/Relay, which forward them on threads of their
//  own.
//
//  Does not own: decisions about bytes or time (Impairment, TCPModel, LinkModel). Everything of a proxy except the fast
//  path runs on one event loop, so its state needs no locks.
