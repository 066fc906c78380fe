#if os(Linux)
    internal import CRelay

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// A pipe between two sockets.
    struct Pipe {
        let entry: CInt
        let exit: CInt
        let size: Int

        func close() {
            SystemSocket.close(entry)
            SystemSocket.close(exit)
        }
    }

    /// Pipes that nobody uses at the moment. A connection has one for as long as there is something in it.
    final class PipePool {
        private var free: [Pipe] = []
        private var count = 0
        /// How many there may be.
        private let countMax: Int
        /// Empty pipes that are kept.
        private let freeMax: Int

        /// What a pipe is to hold: as much as Linux lets anybody have (`fs.pipe-max-size`).
        private static let size = 1 << 20

        /// - Parameter pools: How many there are.
        init(pools: Int) {
            // A pipe takes two files.
            countMax = max(8, FileBudget.filesMax / FileBudget.pipeShare / 2) / pools
            freeMax = 16 / pools
        }

        func take() -> Pipe? {
            if let pipe = free.popLast() { return pipe }
            guard count < countMax else { return nil }
            var ends: [CInt] = [-1, -1]
            let size = crelay_pipe(&ends, CInt(Self.size))
            guard size > 0 else { return nil }
            count += 1
            return Pipe(entry: ends[1], exit: ends[0], size: Int(size))
        }

        /// Takes a lane's pipe back; one with something in it is of no use to others.
        func give(_ lane: inout RelayedConnection.Lane) {
            guard let pipe = lane.pipe else { return }
            lane.pipe = nil
            if lane.held == 0 && free.count < freeMax {
                free.append(pipe)
            } else {
                pipe.close()
                count -= 1
            }
        }
    }
#endif
