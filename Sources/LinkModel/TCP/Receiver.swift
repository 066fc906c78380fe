/// The receiving half of an end: what has arrived, and when to acknowledge it.
///
/// The first segments are acknowledged at once, later ones every second or after 40 ms. At once also while there is a
/// gap, when one is filled, when a segment comes twice (RFC 5681 4.2, `tcp_input.c`), and when the application has read
/// everything up to the end of a write and does not answer what it reads (`tcp_cleanup_rbuf`).
struct Reassembly: Sendable {
    /// The first byte not received.
    private(set) var next: Int64 = 0
    /// What has been received beyond a gap, in order.
    private var beyond: [Range<Int64>] = []
    /// The same as SACK blocks, the newest first; four are remembered, three fit into a segment.
    private var recent: [Range<Int64>] = []
    /// The end of the stream, once a FIN has been received.
    private var final: Int64?
    /// The timestamp to echo.
    private(set) var echo: Int64 = 0
    /// What the last ACK said.
    private var lastAcknowledged: Int64 = 0
    /// Something has arrived since the last ACK.
    private var isOwed = false
    /// Segments that will still be acknowledged at once.
    private var quick = 0
    private var lastArrival: Int64 = 0
    private var growth = WindowGrowth()
    /// The estimate of the time between segments, Linux's `ato`.
    private var interval: Int64 = 0
    /// This end answers what it gets, so an ACK may wait for the answer.
    private(set) var isInteractive = false
    /// The end of a write has come that has not been acknowledged.
    private var owesPushed = false
    /// Whether the application reads what comes at once.
    private let readsAtOnce: Bool
    /// What the application has not read.
    private(set) var unread: Int64 = 0
    /// The window that has been offered ends here; it is never taken back.
    private var offeredEnd: Int64 = 0
    /// The next ACK says that a segment came twice.
    private(set) var owesDuplicate = false

    /// `TCP_MAX_QUICKACKS`.
    private static let quickMax = 16
    private static let blocksMax = 4

    /// - Parameter first: Where the stream begins; 0 but for tests of long ones.
    init(readsAtOnce: Bool, first: Int64 = 0) {
        self.readsAtOnce = readsAtOnce
        next = first
        lastAcknowledged = first
        offeredEnd = first
    }

    /// What to do about a segment.
    enum Reply: Sendable { case none, acknowledge, acknowledgeLater }

    /// The connection is up; `timestamp` is the peer's.
    mutating func begin(echoing timestamp: Int64, at now: Int64) {
        echo = max(echo, timestamp)
        lastArrival = now
    }

    /// Takes the timestamp of a packet without bytes.
    mutating func takeEmpty(_ segment: Segment) { renewEcho(segment) }

    /// Takes a segment with bytes; gives how many bytes (without a FIN) are new in order, whether the FIN is among them,
    /// and what to reply.
    mutating func take(
        _ segment: Segment, timeout: Int64, delayedAck: Int64, at now: Int64
    ) -> (delivered: Int64, isFinal: Bool, reply: Reply) {
        isOwed = true
        if segment.end <= next {
            // A duplicate at or below the last ACK renews the echo, and is answered at once (D-SACK, RFC 2883).
            renewEcho(segment)
            quick = Self.quickMax
            isInteractive = false
            owesDuplicate = true
            return (0, false, .acknowledge)
        }
        renewEcho(segment)
        if segment.isFinal { final = segment.end }
        noteArrival(timeout: timeout, delayedAck: delayedAck, at: now)
        if segment.start > next {
            store(segment.start..<segment.end)
            return (0, false, .acknowledge)
        }
        let before = next
        let hadGap = !beyond.isEmpty
        next = segment.end
        while let first = beyond.first, first.lowerBound <= next {
            next = max(next, first.upperBound)
            beyond.removeFirst()
        }
        if hadGap { recent.removeAll { $0.upperBound <= next } }
        let isFinal = final.map { $0 <= next } ?? false
        let delivered = next - before - (isFinal ? 1 : 0)
        if growth.take(segment, readUpTo: readsAtOnce ? next : before - unread, at: now) { quick |= 1 }
        if readsAtOnce {
            owesPushed = segment.isPushed
        } else {
            unread += delivered
            owesPushed = owesPushed || segment.isPushed
        }
        let isQuick = !isInteractive && (quick > 0 || (owesPushed && unread == 0))
        if isQuick || hadGap || isFinal || next - lastAcknowledged > Int64(PacketSize.segmentMax) {
            return (delivered, isFinal, .acknowledge)
        }
        return (delivered, isFinal, .acknowledgeLater)
    }

    /// An ACK goes out, alone or with data. Gives the ranges it reports.
    mutating func acknowledge() -> SackBlocks {
        lastAcknowledged = next
        owesDuplicate = false
        owesPushed = false
        if isOwed && quick > 0 { quick -= 1 }
        isOwed = false
        var blocks = SackBlocks()
        if !recent.isEmpty {
            for block in recent.prefix(3) { blocks.append(block, from: next) }
        }
        return blocks
    }

    /// The application reads; gives whether an ACK must say so at once (`tcp_cleanup_rbuf`): it has read to the end of
    /// a write, or the window has doubled.
    mutating func read(_ bytes: Int64) -> Bool {
        unread = max(0, unread - bytes)
        if owesPushed && unread == 0 && isOwed && !isInteractive { return true }
        let room = self.room
        return room > 0 && room >= 2 * (offeredEnd - next)
    }

    /// The window to offer now: no less than was offered before, nothing below a segment (RFC 9293, 3.8.6.2.2).
    mutating func offerWindow() -> Int64 {
        offeredEnd = max(offeredEnd, next + room)
        return offeredEnd - next
    }

    private var room: Int64 {
        let free = growth.window - unread
        return free < Int64(PacketSize.segmentMax) ? 0 : free
    }

    /// Data goes out: if it answers something that has just come, this end is interactive.
    mutating func noteSending(at now: Int64) {
        if interval > 0 && now - lastArrival < interval { isInteractive = true }
    }

    /// `tcp_replace_ts_recent`: of what is not acknowledged yet, the earliest timestamp is echoed.
    private mutating func renewEcho(_ segment: Segment) {
        if segment.start <= lastAcknowledged && segment.timestamp >= echo { echo = segment.timestamp }
    }

    /// `tcp_event_data_recv`.
    private mutating func noteArrival(timeout: Int64, delayedAck: Int64, at now: Int64) {
        let gap = now - lastArrival
        if interval == 0 {
            quick = Self.quickMax
            interval = delayedAck
        } else if gap <= delayedAck / 2 {
            interval = interval / 2 + delayedAck / 2
        } else if gap < interval {
            interval = min(interval / 2 + gap, timeout)
        } else if gap > timeout {
            quick = Self.quickMax  // the sender has probably restarted
        }
        lastArrival = now
    }

    private mutating func store(_ range: Range<Int64>) {
        var merged = range
        var index = 0
        while index < beyond.count && beyond[index].upperBound < merged.lowerBound { index += 1 }
        var last = index
        while last < beyond.count && beyond[last].lowerBound <= merged.upperBound {
            merged = min(merged.lowerBound, beyond[last].lowerBound)..<max(merged.upperBound, beyond[last].upperBound)
            last += 1
        }
        beyond.replaceSubrange(index..<last, with: CollectionOfOne(merged))
        recent.removeAll { $0.lowerBound <= merged.upperBound && merged.lowerBound <= $0.upperBound }
        recent.insert(merged, at: 0)
        if recent.count > Self.blocksMax { recent.removeLast() }
    }
}
