//  LinkModel: a deterministic model of a network link.
//
//  Owns: link conditions and timelines, the pipe of one direction (loss, bounded queue, rate, delay), and the packet
//  link of both directions with its packets in flight. Times, random streams and stable hashes are in Determinism.
//
//  Does not own: the payload of packets (it counts bytes), protocols (TCPModel), sockets, clocks, threads, files. Time
//  is an argument, events are results, and all randomness follows from a seed. The live proxy and simulations in
//  virtual time run the same code.
