//  NotesServer: carries NotesService over HTTP.
//
//  Owns: starting and stopping, how many may wait, when an answer goes out.
//
//  Does not own: what is answered (NotesService).
