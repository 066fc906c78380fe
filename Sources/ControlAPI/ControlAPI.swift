//  ControlAPI: proxies that are made, changed and watched over HTTP.
//
//  Owns: Toxiproxy's API and ours beside it, which proxies there are, who may call, metrics.
//
//  Does not own: what a proxy does (ProxyServer), what a toxic does (Impairment), the command line.
//
//  A call is answered by `API.respond`, from a request and its body to an answer; `APIServer` puts that on a socket. No call waits
//  for anything but event loops and the name look-ups it asks for itself.
