//  CommandSupport: the terminal of the commands.
//
//  Owns: output to the console with a status line, log handlers, signals, reading of standard input, the failure of
//  standard output; numbers and tables as text.
//
//  Does not own: the results of commands as text, servers in the foreground, arguments and exit statuses (slowlane), the
//  results of runs (ScenarioRunner).
