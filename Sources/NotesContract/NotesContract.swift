//  NotesContract: what goes over the wire between a notes client and a notes server.
//
//  Owns: notes, revisions, index entries, dates, names of headers, their JSON.
//
//  Does not own: what anybody does with them.
