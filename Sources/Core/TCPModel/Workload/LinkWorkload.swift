//  TCPModel/Workload: transfers over a modelled link in virtual time, timed as an application would time them.
//
//  Owns: the kinds of transfers (requests, downloads, uploads, ping-pong, outages), their two applications, the order
//  of trials on one link.
//
//  Does not own: the link (LinkModel), TCP (TCPModel), output and arguments (the command).
