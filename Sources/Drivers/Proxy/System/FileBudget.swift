internal import NIOCore
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
    /// The least number of files for the fast path's pipes.
    package static let pipeFilesMin = 16
    /// Files that a proxy has open before its first connection: about 3 for each event loop and relay, of which there
    /// are as many as processors, and standard streams, listening sockets, and the event loop of the API. (A proxy on
    /// two processors has 23.)
    package static func filesAtStart(processors: Int = System.coreCount) -> Int { 20 + 4 * processors }

    /// The maximum number of connections of all proxies.
    package let connectionsMax: Int
    private let connectionCount = Atomic<Int>(0)

    /// - Parameter files: The process's limit on open files.
    package init(files: Int) { connectionsMax = max(1, Self.connectionsMax(files: files)) }

    /// Returns how many proxied connections fit into a limit on open files; 0 if none.
    package static func connectionsMax(files: Int, processors: Int = System.coreCount) -> Int {
        let reserve = max(min(filesReserved, files / 2), filesAtStart(processors: processors))
        return max(0, (files - reserve - pipeFiles(of: files)) / 2)
    }

    /// Returns the lowest limit on open files with room for a connection.
    package static func filesMin(processors: Int = System.coreCount) -> Int {
        var files = filesAtStart(processors: processors) + pipeFilesMin + 2
        // With many processors, the pipes' share exceeds its minimum.
        while connectionsMax(files: files, processors: processors) == 0 { files += 1 }
        return files
    }

    /// Returns the number of files for the fast path's pipes.
    package static func pipeFiles(of files: Int) -> Int { max(pipeFilesMin, files / pipeShare) }

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
