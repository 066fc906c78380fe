//  Wire/HTTP2: HTTP/2 framing without I/O (RFC 9113), with header blocks decoded by NIOHPACK (RFC 7541).
//
//  Owns: the boundaries of frames with exact byte offsets, the serialisation of frames, header blocks, error codes.
//
//  Does not own: sockets, clocks, TLS, the states of streams, flow control. Inputs are bytes; outputs are frames.
