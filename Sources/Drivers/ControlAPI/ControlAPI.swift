//  ControlAPI: the HTTP API that creates, changes and observes proxies.
//
//  Owns: Toxiproxy's API and Slowlane's own API with its OpenAPI document, the registry of proxies, request
//  authorization, metrics.
//
//  Does not own: proxying (Proxy), the effects of toxics (Impairment), the command line.
//
//  `API.respond` maps a request and its body to a response without a socket; `APIServer` serves it over HTTP. A call
//  waits only for event loops and for the name lookups that it needs itself.
