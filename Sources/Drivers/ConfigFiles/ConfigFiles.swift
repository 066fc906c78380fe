//  ConfigFiles: the files that users write, read with source locations.
//
//  Owns: YAML with source locations, profiles, timelines and scenarios (built in and from files), quantities with
//  units, netem expressions, suggestions for misspelt names.
//
//  Does not own: the meaning of the values (LinkModel, Scenario). A file is accepted or rejected as a whole; every
//  error in it is reported with its location.
