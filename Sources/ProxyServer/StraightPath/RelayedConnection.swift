#if os(Linux)
    internal import CRelay
    internal import LinkModel
    internal import NIOCore

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// One connection that the relay carries: two sockets, and what is between them.
    ///
    /// Sockets are watched edge-triggered: what one was last known to be ready for is kept, until it says otherwise.
    final class RelayedConnection {
        /// A socket.
        struct End {
            var descriptor: CInt
            var mayRead = false
            var mayWrite = false
            /// Its peer has said that nothing more comes, or that it is gone: reading says which.
            var hangsUp = false
            /// The system has reported an error of it; what it had received before can still be read.
            var hasFailed = false
            /// Nothing can be written to it, and nothing more will come of it: its peer has reset it.
            var isLost = false
            /// It has had urgent data: a read ends before them though more comes after.
            var isUrgent = false
        }

        /// One direction's bytes.
        struct Lane {
            /// What has been read without being copied; `held` bytes are in it.
            var pipe: Pipe?
            /// What has been read and copied, from `keptFrom` on; `held` bytes.
            var kept: UnsafeMutableRawPointer?
            var keptFrom = 0
            var held = 0
            var bytesRead = 0
            /// The last read was a full one: the next goes through a pipe.
            var isBulk = false
            /// The sender's FIN has been read.
            var isAtEnd = false
            /// It has been passed on.
            var isFinished = false
        }

        let port: RelayPort
        let token: RelayToken
        let number: Int
        let seed: UInt64
        let startedAt: NIODeadline
        /// The sockets by the direction in which they send.
        var ends: PerDirection<End>
        var lanes = PerDirection(up: Lane(), down: Lane())
        /// The upstream has not answered yet.
        var isDialling = true
        /// The addresses left to try.
        var addresses: ArraySlice<SocketAddress> = []
        /// Dials to earlier addresses that have not been answered either; the first answer is taken.
        var earlierDials: [CInt] = []
        /// The proxies of this process that it has passed, and the records of its dials if they may lead to another.
        let passed: [LoopDetector.ProxyNumber]
        var dialRecords: [LoopDetector.Dial] = []
        /// The relay's round in which a dial was last closed: events of it may still come.
        var dialsClosedInRound: UInt64?
        /// Set while it waits for its next turn.
        var isWaitingForTurn = false
        /// When the next address is dialled, or the connection given up.
        var dialDue: NIODeadline?
        /// When the connection is given up.
        var dialDeadline: NIODeadline { startedAt + port.order.connectTimeout }
        /// Counts what has happened at the relay.
        var lastActive: UInt64 = 0
        /// When a connection that has lost a socket is aborted, whether the other has taken everything or not.
        var abortDue: NIODeadline?
        /// Set while a timer is pending that looks whether it has.
        var isAbortPending = false
        /// How long the other socket has to take what had been received when one was lost. As long as TCP's own retransmissions
        /// need on a lossy network; a receiver that does not read is not waited for longer.
        static let abortDelayMax = TimeAmount.seconds(5)

        init(_ arrival: Arrival, token: RelayToken, on port: RelayPort) {
            self.port = port
            self.token = token
            number = arrival.number
            seed = arrival.seed
            startedAt = arrival.startedAt
            passed = arrival.passed
            ends = PerDirection(up: End(descriptor: arrival.client.take()), down: End(descriptor: -1))
        }

        /// Where it goes on.
        enum Progress {
            /// When a socket is ready again.
            case waits
            /// After others have had their turn.
            case hasMore
            /// Nowhere: both directions have ended.
            case over
            /// Nowhere in this direction: one of the sockets is lost.
            case lost
        }

        /// Rounds of one turn.
        private static let roundsPerTurn = 4

        /// Carries what there is in a direction.
        func carry(_ direction: Direction, _ tools: borrowing RelayTools) -> Progress {
            var roundsLeft = Self.roundsPerTurn
            while true {
                if ends[direction.opposite].isLost {
                    drop(direction, tools.pipes)
                    return .lost
                }
                if lanes[direction].held > 0 {
                    guard ends[direction.opposite].mayWrite else { return .waits }
                    if let progress = passOn(direction) { return progress }
                    continue
                }
                if lanes[direction].isAtEnd { return ends[direction].isLost ? .lost : finish(direction) }
                guard ends[direction].mayRead else {
                    tools.pipes.give(&lanes[direction])
                    return .waits
                }
                if roundsLeft == 0 { return .hasMore }
                roundsLeft -= 1
                // Where urgent data are, a splice says that there is nothing, though there is.
                let isBulk = lanes[direction].isBulk && !ends[direction].isUrgent
                let progress = isBulk ? splice(direction, tools) : copy(direction, tools)
                if let progress { return progress }
            }
        }

        /// Hands held bytes to the receiving socket; `nil` is: go on.
        private func passOn(_ direction: Direction) -> Progress? {
            let receiver = ends[direction.opposite].descriptor
            let held = lanes[direction].held
            let count =
                if let pipe = lanes[direction].pipe {
                    crelay_splice(pipe.exit, receiver, held)
                } else {
                    send(receiver, lanes[direction].kept! + lanes[direction].keptFrom, held, CInt(MSG_NOSIGNAL))
                }
            if count < 0 {
                switch errno {
                case EAGAIN:
                    stall(direction)
                    return .waits
                case EINTR: return nil
                default:
                    lose(direction.receiver)
                    return nil
                }
            }
            lanes[direction].held -= count
            lanes[direction].keptFrom += count
            port.traffic.bytesCarried[direction] += count
            if lanes[direction].held == 0, let kept = lanes[direction].kept {
                kept.deallocate()
                lanes[direction].kept = nil
            }
            return nil
        }

        /// A socket takes nothing any more. What it has received can still be read, to its end.
        func lose(_ side: Side) {
            ends[side.sends].isLost = true
            ends[side.sends].mayRead = true
        }

        /// Whether a socket is lost.
        var hasLostSocket: Bool { ends.up.isLost || ends.down.isLost }

        /// Whether a socket has bytes that its peer's kernel has not acknowledged.
        func hasUnacknowledged(_ side: Side) -> Bool {
            SystemSocket.unacknowledgedBytes(of: ends[side.sends].descriptor) > 0
        }

        /// The receiving socket takes no more for now.
        private func stall(_ direction: Direction) {
            ends[direction.opposite].mayWrite = false
            port.traffic.stalls[direction] += 1
        }

        /// Reads into a pipe.
        private func splice(_ direction: Direction, _ tools: borrowing RelayTools) -> Progress? {
            if lanes[direction].pipe == nil { lanes[direction].pipe = tools.pipes.take() }
            guard let pipe = lanes[direction].pipe else {
                lanes[direction].isBulk = false
                return nil
            }
            let limit = min(pipe.size, port.bytesMax)
            let count = crelay_splice(ends[direction].descriptor, pipe.entry, limit)
            // Before urgent data this says that the stream has ended: that a copy knows better.
            guard count != 0 else {
                lanes[direction].isBulk = false
                return nil
            }
            if count > 0 {
                lanes[direction].held = count
                // Little at a time is better copied.
                if count < tools.buffer.count { lanes[direction].isBulk = false }
            }
            return noteRead(count, direction)
        }

        /// Reads into the buffer that all share, and writes from it; what is not taken is kept.
        private func copy(_ direction: Direction, _ tools: borrowing RelayTools) -> Progress? {
            tools.pipes.give(&lanes[direction])
            let limit = min(tools.buffer.count, port.bytesMax)
            let count = recv(ends[direction].descriptor, tools.buffer.baseAddress, limit, 0)
            if let progress = noteRead(count, direction) { return progress }
            guard count > 0 else { return nil }
            if count == limit {
                lanes[direction].isBulk = true
            } else if !ends[direction].hangsUp && !ends[direction].isUrgent {
                // There was no more; what comes now is told.
                ends[direction].mayRead = false
            }
            var sent = 0
            if ends[direction.opposite].mayWrite {
                sent = send(
                    ends[direction.opposite].descriptor, tools.buffer.baseAddress, count, CInt(MSG_NOSIGNAL))
                let isInterrupted = sent < 0 && errno == EINTR
                if sent < 0 {
                    guard errno == EAGAIN || isInterrupted else {
                        lose(direction.receiver)
                        return nil
                    }
                    sent = 0
                }
                port.traffic.bytesCarried[direction] += sent
                if sent < count && !isInterrupted { stall(direction) }
            }
            if sent < count {
                let kept = UnsafeMutableRawPointer.allocate(byteCount: count - sent, alignment: 1)
                kept.copyMemory(from: tools.buffer.baseAddress! + sent, byteCount: count - sent)
                lanes[direction].kept = kept
                lanes[direction].keptFrom = 0
                lanes[direction].held = count - sent
            }
            return nil
        }

        /// Takes what a read has said; `nil` is: go on.
        private func noteRead(_ count: Int, _ direction: Direction) -> Progress? {
            if count > 0 {
                lanes[direction].bytesRead += count
                port.traffic.bytesRead[direction] += count
            } else if count == 0 {
                lanes[direction].isAtEnd = true
            } else {
                switch errno {
                case EAGAIN: ends[direction].mayRead = false
                case EINTR: break
                // A reset: there is nothing behind it.
                default:
                    ends[direction].isLost = true
                    lanes[direction].isAtEnd = true
                }
            }
            return nil
        }

        /// Passes a FIN on, after everything.
        private func finish(_ direction: Direction) -> Progress {
            let isNew = !lanes[direction].isFinished
            lanes[direction].isFinished = true
            // Closing says it, too.
            if lanes[direction.opposite].isFinished { return .over }
            if isNew { shutdown(ends[direction.opposite].descriptor, CInt(SHUT_WR)) }
            return .waits
        }

        /// Whether something has been read that its receiver has not taken.
        var holdsSomething: Bool { lanes.up.held > 0 || lanes.down.held > 0 }

        /// Takes what is held out of the lanes.
        func takeHeld(_ pipes: PipePool) -> PerDirection<ByteBuffer> {
            var taken = PerDirection(up: ByteBuffer(), down: ByteBuffer())
            for direction in Direction.allCases {
                let held = lanes[direction].held
                if held > 0 {
                    taken[direction].writeWithUnsafeMutableBytes(minimumWritableBytes: held) { room in
                        guard let pipe = lanes[direction].pipe else {
                            room.baseAddress!.copyMemory(
                                from: lanes[direction].kept! + lanes[direction].keptFrom, byteCount: held)
                            return held
                        }
                        var count = 0
                        while count < held {
                            let piece = read(pipe.exit, room.baseAddress! + count, held - count)
                            if piece <= 0 { break }
                            count += piece
                        }
                        return count
                    }
                    lanes[direction].held -= taken[direction].readableBytes
                }
                drop(direction, pipes)
            }
            return taken
        }

        /// Forgets what is held in a direction.
        func drop(_ direction: Direction, _ pipes: PipePool) {
            lanes[direction].kept?.deallocate()
            lanes[direction].kept = nil
            pipes.give(&lanes[direction])
            lanes[direction].held = 0
        }

        /// How it stands.
        var status: ConnectionStatus {
            ConnectionStatus(
                id: ConnectionID(carrier: .relay(token)), number: number, client: RelayLoop.peer(of: ends.up.descriptor),
                age: Nanoseconds((NIODeadline.now() - startedAt).nanoseconds),
                bytesRead: PerDirection(up: lanes.up.bytesRead, down: lanes.down.bytesRead),
                bytesHeld: PerDirection(up: lanes.up.held, down: lanes.down.held))
        }
    }

    extension RelayedConnection {
        /// Where a dial stands.
        enum DialState {
            case pending
            case connected
            case failed(CInt)

            init(_ descriptor: CInt) {
                var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                guard SystemSocket.isReady(&poll) else {
                    self = .pending
                    return
                }
                var code: CInt = 0
                var length = socklen_t(MemoryLayout<CInt>.size)
                getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
                self = code == 0 ? .connected : .failed(code)
            }
        }

        /// Takes the first of several dials that has been answered; closes those that have failed. Gives the last failure if
        /// none is left.
        func takeAnsweredDial() -> DialState {
            var failure: CInt = ETIMEDOUT
            var pending: [CInt] = []
            var answered: CInt?
            for dial in earlierDials + [ends.down.descriptor] {
                switch DialState(dial) {
                case .connected where answered == nil: answered = dial
                case .connected: SystemSocket.close(dial)
                case .pending: pending.append(dial)
                case .failed(let code):
                    failure = code
                    SystemSocket.close(dial)
                }
            }
            if let answered {
                for dial in pending { SystemSocket.close(dial) }
                earlierDials = []
                // What it has said meanwhile may have been told before it was chosen.
                ends.down = End(descriptor: answered, mayRead: true, mayWrite: true, hangsUp: true)
                return .connected
            }
            ends.down = End(descriptor: pending.popLast() ?? -1)
            earlierDials = pending
            return ends.down.descriptor >= 0 ? .pending : .failed(failure)
        }

        /// Closes all dials that are under way.
        func closeDials() {
            dialRecords = []
            for dial in earlierDials + [ends.down.descriptor] where dial >= 0 { SystemSocket.close(dial) }
            earlierDials = []
            ends.down = End(descriptor: -1)
        }
    }

    /// What all connections of the thread use in turn.
    struct RelayTools: ~Copyable {
        /// What is read in small pieces passes through this.
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 4096)
        let pipes: PipePool
    }
#endif
