//  Proxy/System: system calls on sockets for which SwiftNIO has no API, and the limits on connections.
//
//  Owns: descriptors outside channels, socket addresses, abort (RST), the process's budget of open files, a proxy's
//  connection slots and numbers.
//
//  Does not own: reading, writing and polling of sockets (Proxy/Relay, Proxy).
