internal import Foundation
internal import Proxy

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The platform's calls for terminals and for the limit of open files.
public enum Terminal {
    /// Whether standard input is a terminal.
    public static var isStandardInput: Bool { isatty(STDIN_FILENO) == 1 }

    /// Whether standard output is a terminal.
    public static var isStandardOutput: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Whether standard error is a terminal.
    public static var isStandardError: Bool { isatty(STDERR_FILENO) == 1 }

    /// Whether this process may read the terminal. The system stops a background process that reads it.
    public static var isInForeground: Bool { tcgetpgrp(STDIN_FILENO) == getpgrp() }

    /// Whether this process is a background process of the terminal on standard input.
    static var isInBackground: Bool {
        let group = tcgetpgrp(STDIN_FILENO)
        return group > 0 && group != getpgrp()
    }

    /// The width of the terminal on standard error in columns.
    package static var columns: Int { size(STDERR_FILENO).columns }

    /// The number of columns for tables on standard output: the environment's COLUMNS, or the width of the terminal;
    /// `nil` if standard output is not a terminal, so that programs read whole cells.
    public static var tableWidth: Int? {
        guard isStandardOutput else { return nil }
        return columns(inEnvironment: ProcessInfo.processInfo.environment) ?? outputSize.columns
    }

    /// Returns the value of COLUMNS; `nil` unless it is a number from 1.
    package static func columns(inEnvironment environment: [String: String]) -> Int? {
        environment["COLUMNS"].flatMap(Int.init).flatMap { $0 >= 1 ? $0 : nil }
    }

    /// The size of the terminal on standard output; 80 columns and 24 rows if it is none.
    public static var outputSize: (columns: Int, rows: Int) { size(STDOUT_FILENO) }

    private static func size(_ descriptor: CInt) -> (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    #if canImport(Darwin)
    private static let openFiles = RLIMIT_NOFILE
    private static let openFilesCeiling = rlim_t(OPEN_MAX)
    #elseif canImport(Glibc)
    private static let openFiles = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    private static let openFilesCeiling = rlim_t(1 << 20)
    #else
    private static let openFiles = RLIMIT_NOFILE
    private static let openFilesCeiling = rlim_t(1 << 20)
    #endif
    /// The limit that systems have had for decades.
    private static let openFilesDefault = 256

    /// The limit of open files (`ulimit -n`).
    package static var openFilesMax: Int {
        var limit = rlimit()
        return getrlimit(openFiles, &limit) == 0 ? Int(clamping: limit.rlim_cur) : openFilesDefault
    }

    /// Raises the limit of open files (`ulimit -n`) to the hard limit and returns it.
    package static func raiseOpenFileLimit() -> Int {
        let (resource, ceiling) = (openFiles, openFilesCeiling)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return openFilesDefault }
        let wanted = min(limit.rlim_max, ceiling)
        if limit.rlim_cur < wanted {
            var raised = limit
            raised.rlim_cur = wanted
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(min(limit.rlim_cur, ceiling))
    }

    /// Raises the limit of open files (`ulimit -n`). Returns a number of proxied connections, or a lower one that fits
    /// into that limit, also 0; the limit; and the lowest limit with room for a connection.
    public static func connectionsMax(_ wanted: Int) -> (count: Int, openFilesMax: Int, openFilesMin: Int) {
        let files = raiseOpenFileLimit()
        return (
            min(wanted, ProxyConfiguration.connectionsMax(withOpenFiles: files)), files, ProxyConfiguration.openFilesMin
        )
    }

    /// Ends the process immediately, without running exit handlers.
    package static func exitImmediately(_ status: Int32) -> Never { _exit(status) }
}
