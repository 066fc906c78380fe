/// The receiving half of an endpoint: reassembly, acknowledgments and the receive window.
///
/// The first segments are acknowledged at once, later ones every second segment or after 40 ms. Segments are also
/// acknowledged at once while there is a gap, when one is filled, when a segment is a duplicate (RFC 5681 4.2,
/// `tcp_input.c`), and when the application has read to the end of a write without responding (`tcp_cleanup_rbuf`).
struct Receiver: Sendable {
    /// The next byte expected (RCV.NXT).
    private(set) var rcvNxt: Int64 = 0
    /// The ranges received beyond a gap, in order (`out_of_order_queue`).
    private var outOfOrder: [Range<Int64>] = []
    /// The same ranges as SACK blocks, the latest first; four are stored, three fit into a segment (`selective_acks`).
    private var sackBlocks: [Range<Int64>] = []
    /// The end of the stream, once the FIN has been received.
    private var streamEnd: Int64?
    /// The timestamp to echo (`ts_recent`).
    private(set) var timestampRecent: Int64 = 0
    /// The acknowledgment number of the last ACK.
    private var lastAckNumber: Int64 = 0
    /// Whether a segment has arrived since the last ACK.
    private var hasUnacknowledged = false
    /// The segments still to be acknowledged at once (`quick`).
    private var quickAcks = 0
    private var lastArrival: Int64 = 0
    private var window = ReceiveWindow()
    /// The estimated interval between segments (`ato`).
    private var ackTimeout: Int64 = 0
    /// Whether the application responds to what it receives, so that ACKs may wait for the response
    /// (`inet_csk_in_pingpong_mode`).
    private(set) var isInteractive = false
    /// Whether an unacknowledged segment ended a write (`ICSK_ACK_PUSHED`).
    private var hasPushed = false
    private let readsImmediately: Bool
    /// The bytes that the application has not read.
    private(set) var unread: Int64 = 0
    /// The end of the advertised window, which never shrinks.
    private var advertisedEnd: Int64 = 0
    /// Whether the next ACK reports a duplicate segment.
    private(set) var needsDSACK = false

    /// `TCP_MAX_QUICKACKS`.
    private static let quickAcksMax = 16
    private static let sackBlocksMax = 4

    /// Creates a receiver.
    ///
    /// - Parameters:
    ///   - readsImmediately: Whether the application reads data at once.
    ///   - first: The sequence number of the first byte; other than 0 in tests of long streams only.
    init(readsImmediately: Bool, first: Int64 = 0) {
        self.readsImmediately = readsImmediately
        rcvNxt = first
        lastAckNumber = first
        advertisedEnd = first
    }

    /// The time at which a segment is to be acknowledged.
    enum Acknowledgment: Sendable { case immediate, delayed }

    /// Completes the handshake; `timestamp` is the peer's.
    mutating func establish(timestamp: Int64, at now: Int64) {
        timestampRecent = max(timestampRecent, timestamp)
        lastArrival = now
    }

    /// Processes a segment without bytes.
    mutating func receiveEmpty(_ segment: Segment) { updateTimestamp(segment) }

    /// Processes a segment with bytes. Returns the number of bytes (without a FIN) that are new in order, whether the
    /// FIN is among them, and when to acknowledge.
    mutating func receive(
        _ segment: Segment, rto: Int64, delayedAck: Int64, at now: Int64
    ) -> (delivered: Int64, isFinal: Bool, acknowledgment: Acknowledgment) {
        hasUnacknowledged = true
        if segment.end <= rcvNxt {
            // A duplicate at or below the last ACK updates the timestamp and is acknowledged at once (D-SACK, RFC
            // 2883).
            updateTimestamp(segment)
            quickAcks = Self.quickAcksMax
            isInteractive = false
            needsDSACK = true
            return (0, false, .immediate)
        }
        updateTimestamp(segment)
        if segment.isFIN { streamEnd = segment.end }
        recordArrival(rto: rto, delayedAck: delayedAck, at: now)
        if segment.start > rcvNxt {
            storeOutOfOrder(segment.start..<segment.end)
            return (0, false, .immediate)
        }
        let before = rcvNxt
        let hadGap = !outOfOrder.isEmpty
        rcvNxt = segment.end
        while let first = outOfOrder.first, first.lowerBound <= rcvNxt {
            rcvNxt = max(rcvNxt, first.upperBound)
            outOfOrder.removeFirst()
        }
        if hadGap { sackBlocks.removeAll { $0.upperBound <= rcvNxt } }
        let isFinal = streamEnd.map { $0 <= rcvNxt } ?? false
        precondition(rcvNxt <= streamEnd ?? .max, "byte \(rcvNxt) received after the FIN")
        let delivered = rcvNxt - before - (isFinal ? 1 : 0)
        if window.grow(with: segment, readUpTo: readsImmediately ? rcvNxt : before - unread, at: now) {
            quickAcks |= 1
        }
        if readsImmediately {
            hasPushed = segment.isPSH
        } else {
            unread += delivered
            hasPushed = hasPushed || segment.isPSH
        }
        let isQuick = !isInteractive && (quickAcks > 0 || (hasPushed && unread == 0))
        if isQuick || hadGap || isFinal || rcvNxt - lastAckNumber > Int64(PacketSize.segmentMax) {
            return (delivered, isFinal, .immediate)
        }
        return (delivered, isFinal, .delayed)
    }

    /// Records that an ACK is sent, alone or with data. Returns its SACK blocks.
    mutating func acknowledge() -> SACKBlocks {
        lastAckNumber = rcvNxt
        needsDSACK = false
        hasPushed = false
        if hasUnacknowledged && quickAcks > 0 { quickAcks -= 1 }
        hasUnacknowledged = false
        var blocks = SACKBlocks()
        if !sackBlocks.isEmpty {
            for block in sackBlocks.prefix(3) { blocks.append(block, from: rcvNxt) }
        }
        return blocks
    }

    /// Records that the application has read `bytes`. Returns whether an ACK must be sent at once (`tcp_cleanup_rbuf`):
    /// the application has read to the end of a write, or the window has doubled.
    mutating func read(_ bytes: Int64) -> Bool {
        unread = max(0, unread - bytes)
        if hasPushed && unread == 0 && hasUnacknowledged && !isInteractive { return true }
        let space = windowSpace
        return space > 0 && space >= 2 * (advertisedEnd - rcvNxt)
    }

    /// Returns the window to advertise: it never shrinks, and is never smaller than a segment (RFC 9293, 3.8.6.2.2).
    mutating func advertiseWindow() -> Int64 {
        advertisedEnd = max(advertisedEnd, rcvNxt + windowSpace)
        return advertisedEnd - rcvNxt
    }

    private var windowSpace: Int64 {
        let free = window.size - unread
        return free < Int64(PacketSize.segmentMax) ? 0 : free
    }

    /// Records that data is sent. Data sent soon after data received makes this end interactive.
    mutating func recordSend(at now: Int64) {
        if ackTimeout > 0 && now - lastArrival < ackTimeout { isInteractive = true }
    }

    /// Stores the earliest timestamp of the segments not acknowledged yet (`tcp_replace_ts_recent`).
    private mutating func updateTimestamp(_ segment: Segment) {
        if segment.start <= lastAckNumber && segment.timestamp >= timestampRecent {
            timestampRecent = segment.timestamp
        }
    }

    /// Updates the estimated interval between segments (`tcp_event_data_recv`).
    private mutating func recordArrival(rto: Int64, delayedAck: Int64, at now: Int64) {
        let gap = now - lastArrival
        if ackTimeout == 0 {
            quickAcks = Self.quickAcksMax
            ackTimeout = delayedAck
        } else if gap <= delayedAck / 2 {
            ackTimeout = ackTimeout / 2 + delayedAck / 2
        } else if gap < ackTimeout {
            ackTimeout = min(ackTimeout / 2 + gap, rto)
        } else if gap > rto {
            quickAcks = Self.quickAcksMax  // the sender has probably restarted
        }
        lastArrival = now
    }

    private mutating func storeOutOfOrder(_ range: Range<Int64>) {
        var merged = range
        var index = 0
        while index < outOfOrder.count && outOfOrder[index].upperBound < merged.lowerBound { index += 1 }
        var last = index
        while last < outOfOrder.count && outOfOrder[last].lowerBound <= merged.upperBound {
            merged =
                min(
                    merged.lowerBound, outOfOrder[last].lowerBound)..<max(
                    merged.upperBound, outOfOrder[last].upperBound)
            last += 1
        }
        outOfOrder.replaceSubrange(index..<last, with: CollectionOfOne(merged))
        // Long queues would make debug builds quadratic.
        assert(
            outOfOrder.count > 64
                || zip(outOfOrder, outOfOrder.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
        sackBlocks.removeAll { $0.lowerBound <= merged.upperBound && merged.lowerBound <= $0.upperBound }
        sackBlocks.insert(merged, at: 0)
        if sackBlocks.count > Self.sackBlocksMax { sackBlocks.removeLast() }
    }
}
