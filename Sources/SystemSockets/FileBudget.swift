internal import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// How many connections all proxies of the process may have together, so that files are left for the API, for logs and databases.
///
/// A connection counts two sockets. While the budget is exhausted, new connections wait in the kernel's backlog.
package final class FileBudget: Sendable {
    package static let shared = FileBudget(files: FileBudget.filesMax)

    /// Files that proxied connections leave to everything else: the API's connections, listening sockets, event loops, databases,
    /// logs. Never more than half of all.
    package static let filesReserved = 1024
    /// The share of the files that the fast path's pipes may take; see ``PipePool``.
    package static let pipeShare = 8

    /// The most connections.
    package let connectionsMax: Int
    private let taken = Atomic<Int>(0)

    /// - Parameter files: How many files the process may have open.
    package init(files: Int) {
        let reserve = min(Self.filesReserved, files / 2)
        connectionsMax = max(1, (files - reserve - files / Self.pipeShare) / 2)
    }

    package var isFull: Bool { taken.load(ordering: .relaxed) >= connectionsMax }

    package func take() { taken.add(1, ordering: .relaxed) }

    package func release() { taken.subtract(1, ordering: .relaxed) }

    /// How many files the system lets the process open (`ulimit -n`).
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
