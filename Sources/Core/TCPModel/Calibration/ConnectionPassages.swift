internal import Determinism
internal import LinkModel

/// The passages of one connection's packets, from its packets at one end in the order of their times.
///
/// Packets that this end sends are matched with the acknowledgments of the other end; a packet whose bytes are sent again
/// was lost unless its acknowledgment shows otherwise (RFC 3522, RFC 2883). Packets that this end receives have the time
/// of their sending in the timestamp option; holes in their sequence numbers are lost packets.
struct ConnectionPassages {
    /// The number of the connection.
    let number: Int
    /// The end at which the packets were captured.
    let near: Side
    /// The nanoseconds per unit of the other end's timestamps; `nil` if they are missing or unusable.
    let tick: Int64?
    /// The time within which further packets show that an earlier one is missing: a round trip.
    let flightSpan: Int64

    /// The passages in both directions.
    var passages: PerDirection<[Passage]> = PerDirection(up: [], down: [])
    /// The time of the other end's clock for each passage: at which it sent the packet, or its acknowledgment.
    var farTimes: PerDirection<[Int64]> = PerDirection(up: [], down: [])
    /// Packets that arrived but are not in the capture.
    private(set) var missingPackets = 0
    /// Whether passages were omitted because of ``Calibration/passagesMax``.
    private(set) var isIncomplete = false

    /// A range of sent bytes whose fate is not known yet.
    private struct Outstanding {
        let start: Int64
        let end: Int64
        /// The passage of its latest transmission.
        var passage: Int
        /// The passage of the transmission before it, or -1.
        var previous = -1
        /// The timestamp of the latest transmission, if it is a repeated one.
        var resent: UInt32?
        var isResolved = false
    }

    /// A range of bytes that has not arrived.
    private struct Hole {
        var start: Int64
        var end: Int64
        /// The passage of its first packet.
        var passage: Int
        /// The bytes of each of its packets.
        let size: Int64
        /// The time and the timestamp of the packet beyond it.
        let time: Int64
        let far: Int64?
    }

    private var outstanding: [Outstanding] = []
    private var head = 0
    private var sentUpTo: Int64?
    private var receivedUpTo: Int64?
    private var holes: [Hole] = []
    /// The repeated ranges whose first transmission counts as lost, the latest last.
    private var repeated: [(start: Int64, passage: Int)] = []
    private var sequences = PerDirection<Int64?>(up: nil, down: nil)
    private var farClock: Int64?
    /// The last data passage that has arrived, the time of its sending, and its queueing time.
    private var lastArrival: (passage: Int, sent: Int64, excess: Int64)?
    /// The shortest time from the other end's clock to an arrival so far.
    private var clockOffset = Int64.max
    /// The payload of a full segment.
    private var segmentSize = PacketSize.segmentMax

    /// The headers of a segment with timestamps.
    private var headerBytes: Int { PacketSize.header }
    /// The smallest segment size that is used, so that a hostile option cannot multiply the passages.
    private static let segmentSizeMin = 128
    /// The largest hole; a larger gap is not a loss but a part that was not captured.
    private static let holeBytesMax: Int64 = 64 << 20
    private static let holesMax = 1024
    private static let repeatedMax = 256

    init(number: Int, near: Side, tick: Int64?, flightSpan: Int64) {
        self.number = number
        self.near = near
        self.tick = tick
        self.flightSpan = flightSpan
    }

    private var outbound: Direction { near.sendDirection }

    /// Processes the connection's next packet.
    ///
    /// - Parameter room: The number of passages that may still be recorded.
    mutating func record(_ packet: CapturedPacket, room: Int) {
        // A packet of 64 KiB has at most 512 segments of the smallest size; a hole is limited to the room as well.
        guard room > 1024 else {
            isIncomplete = true
            return
        }
        if packet.segmentSizeMax > 0 {
            let options = packet.timestamp == nil ? 0 : 12
            segmentSize = min(segmentSize, max(Self.segmentSizeMin, Int(packet.segmentSizeMax) - options))
        }
        if packet.direction == outbound { send(packet) } else { receive(packet, room: room - 1024) }
    }

    // MARK: Sequence numbers

    /// Returns the position of a sequence number in its stream.
    private mutating func position(_ number: UInt32, _ direction: Direction) -> Int64 {
        guard let reference = sequences[direction] else {
            sequences[direction] = Int64(number)
            return Int64(number)
        }
        let position = reference + Int64(Int32(bitPattern: number &- UInt32(truncatingIfNeeded: reference)))
        sequences[direction] = max(reference, position)
        return position
    }

    /// Returns the other end's time of a packet in nanoseconds.
    private mutating func farTime(_ packet: CapturedPacket) -> Int64? {
        guard let tick, let value = packet.timestamp?.value else { return nil }
        let reference = farClock ?? Int64(value)
        let count = reference + Int64(Int32(bitPattern: value &- UInt32(truncatingIfNeeded: reference)))
        farClock = max(reference, count)
        return count.multipliedSaturating(by: tick).clamped(to: -(1 << 60)...(1 << 60))
    }

    private mutating func append(_ passage: Passage, _ direction: Direction, far: Int64?) -> Int {
        passages[direction].append(passage)
        farTimes[direction].append(far ?? .min)
        return passages[direction].count - 1
    }

    /// Returns the sizes of the segments of a packet.
    private func pieces(ofPayload bytes: Int) -> [Int] {
        if bytes <= segmentSize { return [bytes] }
        let whole = Array(repeating: segmentSize, count: bytes / segmentSize)
        return bytes % segmentSize == 0 ? whole : whole + [bytes % segmentSize]
    }

    private func passage(_ packet: CapturedPacket, payload: Int) -> Passage {
        let isWhole = payload >= packet.payloadBytes
        return Passage(
            sent: packet.time, exit: packet.time,
            bytes: Int32(clamping: isWhole ? packet.packetBytes : payload + headerBytes), connection: Int32(number))
    }

    // MARK: Packets of this end

    private mutating func send(_ packet: CapturedPacket) {
        if packet.flags.contains(.ack) { acknowledgeHoles(position(packet.acknowledgmentNumber, outbound.opposite)) }
        let extra = packet.flags.contains(.syn) || packet.flags.contains(.fin) ? 1 : 0
        guard packet.payloadBytes + extra > 0, !packet.flags.contains(.reset) else {
            _ = append(passage(packet, payload: packet.payloadBytes), outbound, far: nil)
            return
        }
        var start = position(packet.sequenceNumber, outbound)
        let end = start + Int64(packet.payloadBytes + extra)
        if let sentUpTo, start < sentUpTo {
            resend(start..<min(end, sentUpTo), packet)
            start = sentUpTo
        }
        guard start < end else { return }
        for piece in pieces(ofPayload: Int(end - start)) {
            let index = append(passage(packet, payload: piece), outbound, far: nil)
            outstanding.append(Outstanding(start: start, end: start + Int64(piece), passage: index))
            start += Int64(piece)
        }
        sentUpTo = end
    }

    /// Returns the index of the first outstanding range that ends after `position`.
    private func firstOutstanding(after position: Int64) -> Int {
        var (low, high) = (head, outstanding.count)
        while low < high {
            let middle = (low + high) / 2
            if outstanding[middle].end <= position { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private mutating func resend(_ range: Range<Int64>, _ packet: CapturedPacket) {
        var index = firstOutstanding(after: range.lowerBound)
        var isKnown = false
        while index < outstanding.count, outstanding[index].start < range.upperBound {
            defer { index += 1 }
            if outstanding[index].isResolved { continue }
            isKnown = true
            let lost = outstanding[index].passage
            passages[outbound][lost].isLost = true
            passages[outbound][lost].isTrial = true
            var again = passage(packet, payload: Int(outstanding[index].end - outstanding[index].start))
            again.isRetransmission = true
            outstanding[index].previous = lost
            outstanding[index].passage = append(again, outbound, far: nil)
            outstanding[index].resent = packet.timestamp?.value
            repeated.append((outstanding[index].start, lost))
            if repeated.count > 2 * Self.repeatedMax { repeated.removeFirst(Self.repeatedMax) }
        }
        if !isKnown {
            var load = passage(packet, payload: packet.payloadBytes)
            load.isRetransmission = true
            _ = append(load, outbound, far: nil)
        }
    }

    private mutating func acknowledge(_ packet: CapturedPacket, far: Int64?) {
        let acknowledged = position(packet.acknowledgmentNumber, outbound)
        var resolved: [Int] = []
        while head < outstanding.count, outstanding[head].end <= acknowledged {
            if !outstanding[head].isResolved { resolved.append(head) }
            head += 1
        }
        for block in packet.sackBlocks {
            let start = position(block.start, outbound)
            let end = position(block.end, outbound)
            if end <= acknowledged {
                recordDuplicate(start)
            } else if start < end {
                selectResolved(start..<end, &resolved)
            }
        }
        resolve(resolved, packet, far: far)
        if head > 4096, head > outstanding.count / 2 {
            outstanding.removeFirst(head)
            head = 0
        }
    }

    /// Finds the ranges that a block acknowledges for the first time. A block that is repeated has grown at one of its ends.
    private func selectResolved(_ block: Range<Int64>, _ resolved: inout [Int]) {
        let first = firstOutstanding(after: block.lowerBound)
        var index = first
        while index < outstanding.count, !outstanding[index].isResolved, outstanding[index].end <= block.upperBound {
            if outstanding[index].start >= block.lowerBound { resolved.append(index) }
            index += 1
        }
        let reached = index
        index = firstOutstanding(after: block.upperBound) - 1
        while index > reached, !outstanding[index].isResolved {
            if outstanding[index].start >= block.lowerBound { resolved.append(index) }
            index -= 1
        }
    }

    private mutating func resolve(_ resolved: [Int], _ packet: CapturedPacket, far: Int64?) {
        var trigger: (passage: Int, sent: Int64)?
        for index in resolved {
            let range = outstanding[index]
            outstanding[index].isResolved = true
            var latest = passages[outbound][range.passage]
            latest.isTrial = true
            latest.exit = packet.time
            var isAmbiguous = false
            if range.previous >= 0 {
                if let resent = range.resent, let echo = packet.timestamp?.echo {
                    if Int32(bitPattern: echo &- resent) < 0 {
                        // The original has arrived, and its repetition was not necessary.
                        passages[outbound][range.previous].isLost = false
                        latest.isTrial = false
                        isAmbiguous = true
                    }
                } else {
                    isAmbiguous = true
                }
            }
            passages[outbound][range.passage] = latest
            farTimes[outbound][range.passage] = far ?? .min
            if !isAmbiguous, latest.sent >= trigger?.sent ?? .min { trigger = (range.passage, latest.sent) }
        }
        guard let trigger else { return }
        let isHandshake = packet.flags.contains(.syn)
        // Data comes with an acknowledgment at the time of the application.
        if packet.payloadBytes > 0 && !isHandshake { return }
        let isPrompt = resolved.count > 1 || !packet.sackBlocks.isEmpty || isHandshake || sentUpTo == nil
        passages[outbound][trigger.passage].timing = isPrompt ? .exact : .delayedACK
    }

    /// Records a duplicate that the other end reports: the repetition was not necessary.
    private mutating func recordDuplicate(_ start: Int64) {
        guard let index = repeated.lastIndex(where: { $0.start == start }) else { return }
        let passage = repeated.remove(at: index).passage
        passages[outbound][passage].isLost = false
        passages[outbound][passage].isTrial = false
    }

    // MARK: Packets of the other end

    private mutating func receive(_ packet: CapturedPacket, room: Int) {
        let far = farTime(packet)
        receiveData(packet, far: far, room: room)
        if packet.flags.contains(.ack), !packet.flags.contains(.reset) { acknowledge(packet, far: far) }
    }

    private mutating func receiveData(_ packet: CapturedPacket, far: Int64?, room: Int) {
        let inbound = outbound.opposite
        let timing = far == nil ? Passage.Timing.bounded : .exact
        var start = position(packet.sequenceNumber, inbound)
        let extra = packet.flags.contains(.syn) || packet.flags.contains(.fin) ? 1 : 0
        var whole = passage(packet, payload: packet.payloadBytes)
        whole.timing = timing
        guard packet.payloadBytes + extra > 0, !packet.flags.contains(.reset), !packet.flags.contains(.syn) else {
            if let far { clockOffset = min(clockOffset, packet.time - far) }
            _ = append(whole, inbound, far: far)
            if packet.flags.contains(.syn) { receivedUpTo = start + 1 }
            return
        }
        let end = start + Int64(packet.payloadBytes + extra)
        let expected = receivedUpTo ?? start
        receivedUpTo = max(expected, end)
        if start < expected {
            fillHoles(start..<min(end, expected), packet, far: far)
            whole.isRetransmission = true
            for piece in pieces(ofPayload: packet.payloadBytes + extra) {
                whole.bytes = passage(packet, payload: piece).bytes
                _ = append(whole, inbound, far: far)
            }
            return
        }
        let sent = far ?? packet.time
        clockOffset = min(clockOffset, packet.time - sent)
        let excess = packet.time - sent - clockOffset
        // Until an acknowledgment of the previous packet could have caused this one.
        let isInFlight = lastArrival.map { sent - $0.sent < flightSpan + $0.excess } ?? false
        if start > expected { recordHole(expected..<start, packet, far: far, isTrial: isInFlight, room: room) }
        if let lastArrival, isInFlight { passages[inbound][lastArrival.passage].isTrial = true }
        for piece in pieces(ofPayload: Int(end - start)) {
            var part = passage(packet, payload: piece)
            part.timing = timing
            start += Int64(piece)
            // Only a later packet shows whether this one had been missed.
            part.isTrial = start < end
            lastArrival = (append(part, inbound, far: far), sent, excess)
        }
    }

    private mutating func recordHole(
        _ range: Range<Int64>, _ packet: CapturedPacket, far: Int64?, isTrial: Bool, room: Int
    ) {
        let length = range.upperBound - range.lowerBound
        let size = Int64(segmentSize)
        guard length <= Self.holeBytesMax, Int((length + size - 1) / size) < room, holes.count < Self.holesMax else {
            isIncomplete = true
            return
        }
        holes.append(
            Hole(
                start: range.lowerBound, end: range.upperBound, passage: passages[outbound.opposite].count,
                size: size, time: packet.time, far: far))
        var lost = passage(packet, payload: segmentSize)
        lost.isLost = true
        lost.isTrial = isTrial
        var left = length
        while left > 0 {
            lost.bytes = Int32(Int(min(left, size)) + headerBytes)
            _ = append(lost, outbound.opposite, far: far)
            left -= size
        }
    }

    /// Removes a range from the holes: its bytes have arrived late, or were repeated.
    private mutating func fillHoles(_ range: Range<Int64>, _ packet: CapturedPacket, far: Int64?) {
        let late = flightSpan / 2
        changeHoles(range) { hole in
            // A packet that was sent before the one beyond the hole was overtaken, and not lost.
            guard let far, let beyond = hole.far else { return packet.time - hole.time < late ? .arrived : .lost }
            return far <= beyond ? .arrived : .lost
        } onArrival: { passage in
            passage.isLost = false
            passage.exit = packet.time
        }
    }

    /// Removes the range before an acknowledgment of this end: its bytes have arrived without being captured.
    private mutating func acknowledgeHoles(_ position: Int64) {
        guard let first = holes.first, first.start < position else { return }
        var count = 0
        changeHoles(first.start..<position) { _ in
            .arrived
        } onArrival: { passage in
            passage.isLost = false
            passage.isTrial = false
            count += 1
        }
        missingPackets += count
    }

    private enum Fate { case arrived, lost }

    private mutating func changeHoles(
        _ range: Range<Int64>, fate: (Hole) -> Fate, onArrival: (inout Passage) -> Void
    ) {
        guard holes.contains(where: { $0.start < range.upperBound && $0.end > range.lowerBound }) else { return }
        var left: [Hole] = []
        for hole in holes {
            let overlap =
                max(
                    hole.start, range.lowerBound)..<max(
                    max(hole.start, range.lowerBound), min(hole.end, range.upperBound))
            if overlap.isEmpty {
                left.append(hole)
                continue
            }
            let first = hole.passage + Int((overlap.lowerBound - hole.start) / hole.size)
            let after = hole.passage + Int((overlap.upperBound - hole.start + hole.size - 1) / hole.size)
            if fate(hole) == .arrived {
                for index in first..<max(first, min(after, passages[outbound.opposite].count)) {
                    onArrival(&passages[outbound.opposite][index])
                }
            }
            if hole.start < overlap.lowerBound {
                var before = hole
                before.end = overlap.lowerBound
                left.append(before)
            }
            if overlap.upperBound < hole.end {
                var beyond = hole
                beyond.passage += Int((overlap.upperBound - hole.start) / hole.size)
                beyond.start = overlap.upperBound
                left.append(beyond)
            }
        }
        holes = left
    }
}
