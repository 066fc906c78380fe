#if os(Linux)
internal import CRelay
internal import LinkModel
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension RelayedConnection {
    /// The reason why forwarding in one direction stopped.
    enum Progress {
        /// A socket is not ready.
        case blocked
        /// More can be forwarded after other connections had their turn.
        case yielded
        /// Both directions have ended.
        case finished
        /// A peer is gone: nothing more can be forwarded in this direction.
        case peerGone
    }

    /// The maximum number of reads of one direction in one turn.
    private static let readsPerTurn = 4

    /// Forwards what can be read and written in one direction.
    func forward(_ direction: Direction, _ buffers: borrowing RelayBuffers) -> Progress {
        var readsLeft = Self.readsPerTurn
        while true {
            if sockets[direction.opposite].isPeerGone {
                discardHeldBytes(direction, buffers.pipes)
                return .peerGone
            }
            if streams[direction].bytesHeld > 0 {
                guard sockets[direction.opposite].isWritable else { return .blocked }
                writeHeldBytes(direction)
                continue
            }
            if streams[direction].isAtEnd {
                return sockets[direction].isPeerGone ? .peerGone : forwardFIN(direction)
            }
            guard sockets[direction].isReadable else {
                buffers.pipes.recycle(from: &streams[direction])
                return .blocked
            }
            if readsLeft == 0 { return .yielded }
            readsLeft -= 1
            // At urgent data splice returns 0 or EAGAIN although bytes follow; recv skips the urgent data.
            if streams[direction].usesPipe && !sockets[direction].hasUrgentData {
                splice(direction, buffers)
            } else {
                copy(direction, buffers)
            }
        }
    }

    /// Writes held bytes to the receiving socket.
    private func writeHeldBytes(_ direction: Direction) {
        let receiver = sockets[direction.opposite].descriptor
        let stream = streams[direction]
        let count =
            if let pipe = stream.pipe {
                crelay_splice(pipe.readEnd, receiver, stream.bytesHeld)
            } else {
                send(receiver, stream.buffer! + stream.bufferOffset, stream.bytesHeld, CInt(MSG_NOSIGNAL))
            }
        if count < 0 {
            switch errno {
            case EAGAIN: receiverIsFull(direction)
            case EINTR: break
            default: peerIsGone(direction.receiver)
            }
            return
        }
        precondition(count > 0, "a relay's pipe holds fewer bytes than were counted")
        streams[direction].bytesHeld -= count
        streams[direction].bufferOffset += count
        port.traffic.bytesCarried[direction] += count
        if streams[direction].bytesHeld == 0, let buffer = stream.buffer {
            buffer.deallocate()
            streams[direction].buffer = nil
        }
    }

    /// Reads into a pipe.
    private func splice(_ direction: Direction, _ buffers: borrowing RelayBuffers) {
        if streams[direction].pipe == nil { streams[direction].pipe = buffers.pipes.take() }
        guard let pipe = streams[direction].pipe else {
            streams[direction].usesPipe = false
            return
        }
        let limit = min(pipe.size, port.bytesHeldMax)
        let count = crelay_splice(sockets[direction].descriptor, pipe.writeEnd, limit)
        // 0 means the end of the stream or urgent data; recv distinguishes them.
        guard count != 0 else {
            streams[direction].usesPipe = false
            return
        }
        if count > 0 {
            streams[direction].bytesHeld = count
            // Copying is cheaper for few bytes.
            if count < buffers.scratch.count { streams[direction].usesPipe = false }
        }
        recordRead(count, direction)
    }

    /// Reads into the shared buffer and writes from it; what the receiver does not take is copied and held.
    private func copy(_ direction: Direction, _ buffers: borrowing RelayBuffers) {
        buffers.pipes.recycle(from: &streams[direction])
        let limit = min(buffers.scratch.count, port.bytesHeldMax)
        let count = recv(sockets[direction].descriptor, buffers.scratch.baseAddress, limit, 0)
        recordRead(count, direction)
        guard count > 0 else { return }
        if count == limit {
            streams[direction].usesPipe = true
        } else if !sockets[direction].hasHangup && !sockets[direction].hasUrgentData {
            // A short read emptied the socket; new bytes cause an event.
            sockets[direction].isReadable = false
        }
        var sent = 0
        if sockets[direction.opposite].isWritable {
            sent = send(
                sockets[direction.opposite].descriptor, buffers.scratch.baseAddress, count, CInt(MSG_NOSIGNAL))
            let isInterrupted = sent < 0 && errno == EINTR
            if sent < 0 {
                guard errno == EAGAIN || isInterrupted else { return peerIsGone(direction.receiver) }
                sent = 0
            }
            port.traffic.bytesCarried[direction] += sent
            if sent < count && !isInterrupted { receiverIsFull(direction) }
        }
        if sent < count {
            hold(UnsafeRawBufferPointer(rebasing: buffers.scratch[sent..<count]), direction)
        }
    }

    /// Holds a copy of bytes for the receiving socket, while no others are held.
    private func hold(_ bytes: UnsafeRawBufferPointer, _ direction: Direction) {
        let held = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        held.copyMemory(from: bytes)
        streams[direction].buffer = held.baseAddress
        streams[direction].bufferOffset = 0
        streams[direction].bytesHeld = bytes.count
    }

    /// Holds the bytes that a client has sent before its tunnel was established.
    func holdEarly(_ bytes: ByteBuffer) {
        guard bytes.readableBytes > 0 else { return }
        bytes.withUnsafeReadableBytes { hold($0, .up) }
        recordRead(bytes.readableBytes, .up)
    }

    /// Records the result of a read; a negative count means `errno`.
    private func recordRead(_ count: Int, _ direction: Direction) {
        if count > 0 {
            streams[direction].bytesRead += count
            port.traffic.bytesRead[direction] += count
        } else if count == 0 {
            streams[direction].isAtEnd = true
        } else {
            switch errno {
            case EAGAIN: sockets[direction].isReadable = false
            case EINTR: break
            // ECONNRESET and others: nothing more can be read.
            default:
                sockets[direction].isPeerGone = true
                streams[direction].isAtEnd = true
            }
        }
    }

    /// Forwards a FIN after all bytes.
    private func forwardFIN(_ direction: Direction) -> Progress {
        let isFirst = !streams[direction].hasForwardedFIN
        streams[direction].hasForwardedFIN = true
        // With both directions finished, closing the sockets sends the FIN.
        if streams[direction.opposite].hasForwardedFIN { return .finished }
        if isFirst { shutdown(sockets[direction.opposite].descriptor, CInt(SHUT_WR)) }
        return .blocked
    }

    /// Marks a socket to which writes fail. What it has received can still be read, to its end.
    private func peerIsGone(_ side: Side) {
        sockets[side.sendDirection].isPeerGone = true
        sockets[side.sendDirection].isReadable = true
    }

    /// Marks the receiving socket as full: reading from the sender pauses.
    private func receiverIsFull(_ direction: Direction) {
        sockets[direction.opposite].isWritable = false
        port.traffic.readPauses[direction] += 1
    }

    /// Removes and returns the held bytes.
    func takeHeldBytes(_ pipes: PipePool) -> PerDirection<ByteBuffer> {
        var taken = PerDirection(up: ByteBuffer(), down: ByteBuffer())
        for direction in Direction.allCases {
            let held = streams[direction].bytesHeld
            if held > 0 {
                taken[direction].writeWithUnsafeMutableBytes(minimumWritableBytes: held) { room in
                    guard let pipe = streams[direction].pipe else {
                        room.baseAddress!.copyMemory(
                            from: streams[direction].buffer! + streams[direction].bufferOffset, byteCount: held)
                        return held
                    }
                    var count = 0
                    while count < held {
                        let piece = read(pipe.readEnd, room.baseAddress! + count, held - count)
                        precondition(piece > 0, "a relay's pipe holds fewer bytes than were counted")
                        count += piece
                    }
                    return count
                }
                streams[direction].bytesHeld = 0
            }
            discardHeldBytes(direction, pipes)
        }
        return taken
    }

    /// Discards the held bytes of one direction.
    func discardHeldBytes(_ direction: Direction, _ pipes: PipePool) {
        streams[direction].buffer?.deallocate()
        streams[direction].buffer = nil
        pipes.recycle(from: &streams[direction])
        streams[direction].bytesHeld = 0
    }
}

/// The buffers of a relay, shared by its connections.
struct RelayBuffers: ~Copyable {
    /// Holds the bytes of one copying read.
    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 4096)
    let pipes: PipePool
}
#endif
