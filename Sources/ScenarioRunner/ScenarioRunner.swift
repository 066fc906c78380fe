//  ScenarioRunner: worlds in which scenarios are played.
//
//  Owns: the live world: a server, a proxy and a client a device on free ports of the loopback, in real time; the history
//  of what happened there.
//
//  Does not own: what a scenario says and whether it held (ScenarioModel), files (Files), arguments (the command).
