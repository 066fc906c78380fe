//  Impairment: what happens to the bytes of a connection.
//
//  Owns: the Conduit (one proxied connection: its bytes in each direction, who has closed what, when to stop
//  reading), and the SharedLink (every conduit of one device, on the one link they share).
//
//  Does not own: the arithmetic of the link (LinkModel), sockets, clocks, threads. Facts and the time go in,
//  actions come out; the live proxy and a simulator call exactly this.
