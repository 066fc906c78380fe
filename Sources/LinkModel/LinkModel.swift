//  LinkModel: the network as arithmetic.
//
//  Owns: link conditions and timelines, the pipe of one direction (loss, bounded queue, rate, delay), and the packet link of
//  both directions with its packets in flight. Determinism/ holds times, random streams and stable hashes.
//
//  Does not own: the payload of packets (it counts bytes), protocols (TCPModel), sockets, clocks, threads, files. Time is an
//  argument, events are results, and all randomness follows from a seed. The same code runs under the live proxy and in
//  virtual time.
