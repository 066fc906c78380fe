//  NotesService: the notes server's brain.
//
//  Owns: the store, and the contract as one synchronous function from a request and its body to a response and its body.
//
//  Does not own: sockets, limits of the connection, time-outs (NotesServer).
