//  Wire/HTTP: HTTP/1.1 framing without I/O.
//
//  Owns: the boundaries of messages with exact byte offsets, the serialisation of heads, the connections of a client
//  and their timeouts, a server's side of a connection and its limits.
//
//  Does not own: sockets, clocks, TLS, the meaning of messages. Inputs are bytes and the time; outputs are parts and
//  actions.
