//  Impairment: the effect of a proxy on the bytes of its connections.
//
//  Owns: Conduit (one proxied connection: the bytes of both streams, which side has closed, when reading pauses),
//  toxics, exchange tracking with faults, the captive portal, and SharedLink (all conduits of one device on the link
//  they share).
//
//  Does not own: the packet link (LinkModel), TCP (TCPModel), sockets, clocks, threads. Inputs are events and the time;
//  outputs are actions. The live proxy and a simulator call the same code.
