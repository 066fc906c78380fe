internal import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The limit on the connections of all proxies of the process together. It reserves open files for everything else.
///
/// A connection takes two files, one for each socket. At the limit, new connections wait in the kernel's backlog.
package final class FileBudget: Sendable {
    package static let shared = FileBudget(files: FileBudget.filesMax)

    /// Files reserved for everything but proxied connections (the API's connections, listening sockets, event loops,
    /// databases, logs), at most half of all.
    package static let filesReserved = 1024
    /// The divisor of the limit on open files that gives the share of the fast path's pipes: one eighth.
    package static let pipeShare = 8

    /// The maximum number of connections of all proxies.
    package let connectionsMax: Int
    private let connectionCount = Atomic<Int>(0)

    /// - Parameter files: The process's limit on open files.
    package init(files: Int) {
        let reserve = min(Self.filesReserved, files / 2)
        connectionsMax = max(1, (files - reserve - files / Self.pipeShare) / 2)
    }

    package var isFull: Bool { connectionCount.load(ordering: .relaxed) >= connectionsMax }

    package func take() { connectionCount.add(1, ordering: .relaxed) }

    package func release() { connectionCount.subtract(1, ordering: .relaxed) }

    /// The process's limit on open files (`ulimit -n`).
    package static var filesMax: Int {
        var limit = rlimit()
        #if canImport(Darwin)
            let code = getrlimit(RLIMIT_NOFILE, &limit)
        #else
            let code = getrlimit(.init(RLIMIT_NOFILE.rawValue), &limit)
        #endif
        return code == 0 ? Int(clamping: limit.rlim_cur) : 256
    }
}
