//  CommandSupport/Measurement: transfers through a live proxy on this machine, timed by the real clock.
//
//  Owns: an echo server, a client that times one echo, the comparison of a profile's figures with measured times.
//
//  Does not own: the delays (Proxy, LinkModel, TCPModel), output and arguments (the command).
