internal import DequeModule
internal import LinkModel
internal import NIOCore
internal import Wire

/// The frames that enter the link.
extension StreamTracker {
    /// Lets bytes enter the link. Frames for the client wait for the server's SETTINGS.
    mutating func emit(_ bytes: ByteBuffer, _ direction: Direction) {
        if direction == .down, !serverHasBegun {
            beforeServerSettings.append(bytes)
            if beforeServerSettings.count > Self.waitingFramesMax {
                fail("HTTP/2: more than \(Self.waitingFramesMax) frames wait for the server's SETTINGS")
            }
            return
        }
        if isTruncated[direction] { return }
        entered[direction] += Int64(bytes.readableBytes)
        let count = bytes.readableBytes
        if count + passing[direction].readableBytes > Self.passingBytesMax { flush(direction) }
        if passing[direction].readableBytes == 0 {
            passing[direction] = bytes
        } else {
            passing[direction].writeImmutableBuffer(bytes)
        }
    }

    /// Passes on the frames that have entered the link since the last call.
    mutating func flush() {
        flush(.up)
        flush(.down)
    }

    private mutating func flush(_ direction: Direction) {
        if passing[direction].readableBytes == 0 { return }
        actions.append(.pass(passing[direction], direction))
        passing[direction] = ByteBuffer()
    }

    /// Lets a frame of a fault enter the link. A peer that does not read cannot make the proxy keep more and more of them.
    mutating func emitOwn(_ bytes: ByteBuffer, _ direction: Direction) {
        let count = bytes.readableBytes
        if written[direction] >= faultBytes[direction].until {
            faultBytes[direction] = (0, entered[direction] + Int64(count))
        }
        faultBytes[direction].count += count
        if faultBytes[direction].count > Self.faultBytesMax {
            return fail("HTTP/2: a peer has not read \(Self.faultBytesMax) bytes of the frames of faults")
        }
        emit(bytes, direction)
    }

    /// Lets a frame of the server enter the link that may be its first one, and then what has waited for it.
    mutating func emitServersFirst(_ bytes: ByteBuffer) {
        serverHasBegun = true
        emit(bytes, .down)
        while let waiting = beforeServerSettings.popFirst() { emit(waiting, .down) }
        sendReplies()
    }

    /// Passes a frame of a stream on: unchanged if nothing of it has changed.
    ///
    /// - Parameter id: The client's identifier; `nil` for a stream that is not tracked.
    mutating func pass(_ item: StreamItem, _ id: UInt32?, _ direction: Direction) {
        if let id, direction == .up, streams[id]?.serverID == nil {
            guard case .block(_, _, .head) = item, assignServerID(id) else { return }
        }
        let stream = id.flatMap { streams[$0] }
        /// Returns the identifier on the receiver's side.
        func target(_ frame: HTTP2Frame) -> UInt32 {
            guard let stream else { return frame.stream }
            return direction == .up ? stream.serverID ?? frame.stream : stream.id
        }
        switch item {
        case .data(let content, let endsStream, _, let original):
            if let original {
                emitFrame(original, target(original), direction)
            } else if let stream {
                let target = direction == .up ? stream.serverID ?? stream.id : stream.id
                emit(HTTP2Frame.data(target, content, endsStream: endsStream), direction)
            }
            if let id { streams[id]?[direction].bodyPassed += Int64(content.readableBytes) }
        case .block(let frame, let fields, let role):
            if case .trailers = role, direction == .down, frame.endsStream, let stream, stream.dropsTrailers {
                rewrites.down = true
                emitOwn(HTTP2Frame.data(stream.id, ByteBuffer(), endsStream: true), .down)
                break
            }
            if let first = heldBlocks[direction].first, first < frame.range.lowerBound { rewrites[direction] = true }
            if rewrites[direction] || (isShifted && direction == .up), let kind = frame.kind {
                rewrites[direction] = true
                let prefix = isShifted && kind == .headers ? ByteBuffer() : frame.prefix
                emit(
                    HTTP2Frame.block(kind, target(frame), fields, prefix: prefix, endsStream: frame.endsStream),
                    direction)
            } else {
                emitFrame(frame, target(frame), direction)
            }
        case .other(let frame): emitFrame(frame, target(frame), direction)
        }
        guard let id else { return }
        if direction == .down, stream?.pingsLeft ?? 0 > 0 { ping(id) }
        guard item.endsStream else { return }
        streams[id]?[direction].endHasPassed = true
        if direction == .down { return markDelivered(id) }
        if let exchange = stream?.exchange, !isTruncated.up {
            marks.up.append((entered.up, .requestDelivered(exchange)))
        }
        removeIfEnded(id)
    }

    private mutating func emitFrame(_ frame: HTTP2Frame, _ target: UInt32, _ direction: Direction) {
        emit(target == frame.stream ? frame.bytes : frame.bytes(on: target), direction)
    }

    /// Gives a stream its identifier on the server's side: that of the client, unless the server has seen a greater one.
    /// Returns whether one is left.
    mutating func assignServerID(_ id: UInt32) -> Bool {
        let server = id > lastServerStream ? id : lastServerStream + 2
        guard server <= HTTP2Frame.streamMax else {
            fail("HTTP/2: no identifier of a stream is left")
            return false
        }
        streams[id]?.serverID = server
        lastServerStream = server
        if server != id {
            isShifted = true
            clientIDs[server] = id
        }
        return true
    }

    /// Reports the delivery of a response when its last byte has been written.
    mutating func markDelivered(_ id: UInt32) {
        guard let stream = streams[id], let exchange = stream.exchange, !stream.isOver, !isTruncated.down else {
            return
        }
        streams[id]?.isOver = true
        let waiting = beforeServerSettings.reduce(Int64(0)) { $0 + Int64($1.readableBytes) }
        let end = entered.down + waiting
        marks.down.append((end, .responseDelivered(exchange, status: stream.status ?? 0, end: end)))
    }
}
