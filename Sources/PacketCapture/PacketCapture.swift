//  PacketCapture: packets as they are on a wire, in both directions: read from an interface, and written as files.
//
//  Owns: live captures through libpcap, finding TCP segments in frames, putting streams together, the exchanges of
//  HTTP in them, pcapng files, and the picture of a modelled packet as IPv4 bytes.
//
//  Does not own: what HTTP is (HTTPWire), what the modelled link does (LinkModel).
