internal import ArgumentParser

/// The exit statuses of all subcommands.
enum ExitStatus {
    /// A measurement or an expectation failed, or the server rejected a call.
    static let failed = ExitCode(1)
    /// No traffic where some is required.
    static let noTraffic = ExitCode(3)
    /// Wrong arguments (`EX_USAGE`).
    static let usage = ExitCode(64)
    /// Invalid file (`EX_DATAERR`).
    static let invalidFile = ExitCode(65)
    /// Cannot bind a port or reach a server (`EX_UNAVAILABLE`).
    static let unavailable = ExitCode(69)
    /// Internal error (`EX_SOFTWARE`).
    static let internalError = ExitCode(70)
    /// Operation not permitted (`EX_NOPERM`).
    static let notPermitted = ExitCode(77)
    /// Interrupted by a signal.
    static let interrupted = ExitCode(130)
}
