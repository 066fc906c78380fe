#if os(Linux)
internal import CRelay

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A kernel pipe through which bytes are spliced from one socket to another.
struct Pipe {
    let writeEnd: CInt
    let readEnd: CInt
    /// Its capacity in bytes.
    let size: Int

    func close() {
        SystemSocket.close(writeEnd)
        SystemSocket.close(readEnd)
    }
}

/// A relay's pipes. A direction of a connection holds one only while bytes are in it.
final class PipePool {
    private var free: [Pipe] = []
    private var count = 0
    /// The limit on pipes, used and free.
    private let countMax: Int
    /// The limit on free pipes.
    private let freeMax: Int

    /// The requested capacity in bytes: Linux's default maximum for an unprivileged process (`fs.pipe-max-size`).
    private static let size = 1 << 20

    /// - Parameter poolCount: The number of pools that share the process's open files.
    init(poolCount: Int) {
        // A pipe takes two files.
        countMax = FileBudget.pipeFiles(of: FileBudget.filesMax) / 2 / poolCount
        freeMax = 16 / poolCount
    }

    /// Returns a free or new pipe; `nil` at the limit, or if the system cannot create one.
    func take() -> Pipe? {
        if let pipe = free.popLast() { return pipe }
        guard count < countMax else { return nil }
        var ends: [CInt] = [-1, -1]
        let size = crelay_pipe(&ends, CInt(Self.size))
        guard size > 0 else { return nil }
        count += 1
        return Pipe(writeEnd: ends[1], readEnd: ends[0], size: Int(size))
    }

    /// Returns a pipe to the pool. A pipe with bytes in it is closed, not reused.
    func recycle(from stream: inout RelayedConnection.Stream) {
        guard let pipe = stream.pipe else { return }
        stream.pipe = nil
        if stream.bytesHeld == 0 && free.count < freeMax {
            free.append(pipe)
        } else {
            pipe.close()
            count -= 1
            precondition(count >= 0, "a pipe was returned twice")
        }
    }
}
#endif
