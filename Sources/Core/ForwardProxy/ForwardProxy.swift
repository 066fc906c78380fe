//  ForwardProxy: the decisions of a forward proxy.
//
//  Owns: the negotiation with a client (HTTP CONNECT, SOCKS 4, 4a and 5), requests in absolute form and their
//  responses, the replies to failures, the page and the PAC file, rules and maps of hosts, hosts whose TLS is
//  intercepted, destinations that are refused for safety; messages of name servers, the resolver's files, and the state
//  of a look-up (Names); addresses of servers, the names in messages between a client that speaks HTTP and an upstream that
//  speaks HTTPS, and failed handshakes (Upstream).
//
//  Does not own: the framing of HTTP (Wire), links and conditions (Impairment, LinkModel), sockets, clocks. Inputs are
//  bytes and events of sockets; outputs are bytes and actions. Timeouts of clients are the driver's.
