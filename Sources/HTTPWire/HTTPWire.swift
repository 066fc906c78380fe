//  HTTPWire: HTTP/1.1 framing as values.
//
//  Owns: where messages begin and end, to the byte; writing them; the client's connections and their time-outs.
//
//  Does not own: sockets, clocks, TLS, what messages mean. Bytes and the time go in, parts and actions come out.
