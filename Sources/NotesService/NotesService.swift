//  NotesService: the notes server's brain.
//
//  Owns: the store, and the contract as one synchronous function from a request and its body to a response and its body,
//  whole or in pieces; the dialects (Dialect.swift), a file a resource (Resources), levers, the OpenAPI document.
//
//  Does not own: sockets, limits of the connection, time-outs (NotesServer).
