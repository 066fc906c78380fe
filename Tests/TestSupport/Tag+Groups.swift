public import Testing

/// The groups of suites that open sockets or start processes. A suite without one of these tags needs neither, and runs beside
/// others. `scripts/test` runs each group in a process of its own, one test at a time.
extension Tag {
    // The suites of three groups do not depend on real time, and run while others use the CPU.

    /// Commands, as child processes.
    @Tag public static var commands: Self
    /// Commands with other programs and files: shells, clients, browsers, archives, pages of the documentation.
    @Tag public static var tools: Self
    /// The notes server and the sync client, also as child processes, and the networks of Swift Testing.
    @Tag public static var services: Self

    // The suites of four groups measure real time, or a busy host disturbs them.

    /// The live proxy.
    @Tag public static var proxies: Self
    /// The live proxy in front of all hosts: forward proxy, names, TLS; and streams of other programs over UDP.
    @Tag public static var gateways: Self
    /// Scenarios in real time.
    @Tag public static var runs: Self
    /// The control API.
    @Tag public static var servers: Self
}
