//  LinkModel: the network itself, as arithmetic.
//
//  Owns: link conditions, the pipe of one direction (rate, bounded queue, delay, loss), the shared link with
//  its one heap of due events, and how a connection's segments share it (handshake, data, FIN, RST).
//
//  Does not own: bytes (it counts them), sockets, clocks, threads, chance, files. Time comes in as an
//  argument; what happened comes out as events. The same code runs under the live proxy and in virtual time.
