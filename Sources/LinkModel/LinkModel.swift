//  LinkModel: the network as arithmetic.
//
//  Owns: link conditions and timelines, the pipe of one direction (rate, bounded queue, delay, loss), and (in TCP/) TCP
//  connections over a shared link. Determinism/ holds times, random streams and stable hashes.
//
//  Does not own: bytes (it counts them), sockets, clocks, threads, files. Time is an argument, events are results, and
//  all randomness follows from a seed. The same code runs under the live proxy and in virtual time.
