//  CommandTraffic: the traffic of a command that `slowlane with` runs.
//
//  Owns: the start of the command and its end; the variables and flags with which programs use a proxy, and those with
//  which they trust the authority of intercepted connections; connect mode on Linux, which redirects the command's calls
//  of connect(2) by notifications of seccomp(2).
//
//  Does not own: the proxy and its link (Proxy), the options and the summary (slowlane), the declarations of system calls
//  (CRelay).
