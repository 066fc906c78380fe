//  CommandSupport: the terminal side of the command line tool.
//
//  Owns: output to the console with a status line, log handlers, signals, reading of standard input, formatting of
//  numbers and tables, the commands that `slowlane proxy` takes while it runs.
//
//  Does not own: arguments, subcommands and exit statuses (slowlane).
