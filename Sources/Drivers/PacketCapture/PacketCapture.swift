//  PacketCapture: packets of network interfaces and of modelled links.
//
//  Owns: live captures with libpcap, decoding of TCP segments, stream reassembly, the HTTP exchanges in the streams,
//  pcap and pcapng files, and the encoding of modelled packets as IPv4.
//
//  Does not own: HTTP parsing (Wire), the modelled link (LinkModel, TCPModel).
