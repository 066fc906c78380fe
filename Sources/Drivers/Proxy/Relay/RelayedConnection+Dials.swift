#if os(Linux)
internal import CRelay
internal import LinkModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension RelayedConnection {
    /// The state of a dial.
    enum DialState {
        case pending
        case established
        /// With the errno.
        case failed(CInt)

        init(_ descriptor: CInt) {
            let isDecided = CRELAY_EPOLLOUT | CRELAY_EPOLLHUP | CRELAY_EPOLLERR
            guard SystemSocket.events(of: descriptor) & isDecided != 0 else {
                self = .pending
                return
            }
            let code = Self.takeError(of: descriptor)
            self = code == 0 ? .established : .failed(code)
        }

        /// Returns and clears a socket's pending error, an errno or 0.
        static func takeError(of descriptor: CInt) -> CInt {
            var code: CInt = 0
            var length = socklen_t(MemoryLayout<CInt>.size)
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
            return code
        }
    }

    /// Selects the first established dial among several and closes those that failed. Returns the last failure if
    /// none is left.
    func selectEstablishedDial() -> DialState {
        var failure: CInt = ETIMEDOUT
        var pending: [CInt] = []
        var established: CInt?
        for dial in earlierDials + [sockets.down.descriptor] {
            switch DialState(dial) {
            case .established where established == nil: established = dial
            case .established: SystemSocket.close(dial)
            case .pending: pending.append(dial)
            case .failed(let code):
                failure = code
                SystemSocket.close(dial)
            }
        }
        if let established {
            for dial in pending { SystemSocket.close(dial) }
            earlierDials = []
            // Events of the socket may have been handled before it was selected.
            sockets.down = Socket(
                descriptor: established, isReadable: true, isWritable: true, hasHangup: true)
            return .established
        }
        sockets.down = Socket(descriptor: pending.popLast() ?? -1)
        earlierDials = pending
        return sockets.down.descriptor >= 0 ? .pending : .failed(failure)
    }

    /// Closes all pending dials and withdraws their records.
    func closeDials() {
        dialRecords = []
        closeEarlierDials()
        if sockets.down.descriptor >= 0 { SystemSocket.close(sockets.down.descriptor) }
        sockets.down = Socket(descriptor: -1)
    }

    /// Closes the pending dials to earlier addresses.
    func closeEarlierDials() {
        for dial in earlierDials { SystemSocket.close(dial) }
        earlierDials = []
    }
}
#endif
