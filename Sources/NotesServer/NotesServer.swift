//  NotesServer: carries NotesService over HTTP, on Hummingbird.
//
//  Owns: sockets, size limits, starting and stopping.
//
//  Does not own: what is answered (NotesService).
