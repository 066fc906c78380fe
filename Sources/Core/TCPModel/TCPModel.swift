//  TCPModel: TCP connections over a modelled link.
//
//  Owns: sender, receiver, congestion control, timers and handshake of each endpoint, the connections of one link, and
//  the records of their packets; timed transfers (`Workload/`); links estimated from captures (`Calibration/`).
//
//  Does not own: bytes (it counts them), the link itself, its conditions and queues (LinkModel), sockets, clocks,
//  threads.
