internal import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The platform's calls about terminals and open files, in one place.
enum Terminal {
    /// Whether a file descriptor is a terminal.
    static func isTerminal(_ descriptor: CInt) -> Bool { isatty(descriptor) == 1 }

    /// Whether this process may read the terminal: a job in the background would be stopped for trying.
    static var isInForeground: Bool { tcgetpgrp(STDIN_FILENO) == getpgrp() }

    /// The width of the terminal on standard error in columns.
    static var columns: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    /// Lets keys through one by one and unechoed; gives what restores the terminal, or `nil` if that is not possible.
    static func readKeysOneByOne() -> (@Sendable () -> Void)? {
        var before = termios()
        guard tcgetattr(STDIN_FILENO, &before) == 0 else { return nil }
        var raw = before
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
        guard tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0 else { return nil }
        let saved = before
        return {
            var saved = saved
            tcsetattr(STDIN_FILENO, TCSADRAIN, &saved)
        }
    }

    /// Raises the number of files this process may open as far as it may; gives that number.
    static func raiseOpenFileLimit() -> Int {
        var limit = rlimit()
        #if canImport(Darwin)
            let resource = RLIMIT_NOFILE
            let ceiling = rlim_t(OPEN_MAX)
        #elseif canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            let ceiling = rlim_t(1 << 20)
        #else
            let resource = RLIMIT_NOFILE
            let ceiling = rlim_t(1 << 20)
        #endif
        guard getrlimit(resource, &limit) == 0 else { return 256 }
        let wanted = min(limit.rlim_max, ceiling)
        if limit.rlim_cur < wanted {
            var raised = limit
            raised.rlim_cur = wanted
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(min(limit.rlim_cur, ceiling))
    }

    /// Leaves at once, waiting for nothing.
    static func leave(_ status: Int32) -> Never { _exit(status) }
}
