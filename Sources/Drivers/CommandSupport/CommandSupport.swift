//  CommandSupport: the terminal side of the command line tool.
//
//  Owns: output to the console with a status line, log handlers, signals, reading of standard input; numbers, tables and
//  the results of commands as text; servers in the foreground, from the line "listening" until a signal; the commands
//  that `slowlane proxy` takes while it runs.
//
//  Does not own: arguments, subcommands and exit statuses (slowlane), what the servers do (Proxy, ControlAPI,
//  NotesServer), Toxiproxy's command line (ToxiproxyCLI).
