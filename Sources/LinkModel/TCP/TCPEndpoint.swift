/// One end of a modelled connection: a kernel's socket in counts.
///
/// Puts together what receives (``Reassembly``) and what sends (``Sender``), and has the end's part in the handshake. The
/// segments it wants to send are left in ``outbox``; its timers are deadlines that the link keeps.
struct TCPEnd: Sendable {
    enum Phase: Sendable { case closed, synSent, synReceived, established, reset }

    let side: Side
    private(set) var phase = Phase.closed
    private let stack: StackPreset
    /// How far this end's kernel is ahead of the link's clock, for the coarseness of its timers.
    private let clockPhase: Nanoseconds
    private(set) var sender: Sender
    private(set) var reassembly: Reassembly
    /// Segments to put on the link now, in order.
    var outbox: [Segment] = []
    private var orders: [Sender.Order] = []

    /// When the sender's timer fires; `.max` is never.
    private(set) var senderDeadline = Int64.max
    private var senderGeneration = 0
    /// When a delayed ACK goes out.
    private(set) var ackDeadline = Int64.max
    /// When the packet of the handshake is repeated.
    private(set) var handshakeDeadline = Int64.max
    private var handshakeTries = 0
    private var firstHandshakeAt: Int64 = 0
    /// How many bytes the kernel keeps for the application until they are acknowledged; it grows with the window.
    private var sendBytesLimit = Self.sendBytesFirst
    private var isFull = false
    /// The socket is gone; a RST goes out once everything handed over has been sent.
    private var resetsWhenSent = false
    /// An ACK must go out now, alone or with data.
    private var owesAck = false

    /// `tcp_sndbuf_expand`: twice the window, a segment charged with 4352 bytes; 10 segments at first, `tcp_wmem[2]` at
    /// most.
    private static let sendBytesFirst: Int64 = 2 * 10 * segmentCharge
    private static let sendBytesMax: Int64 = 4 << 20
    private static let segmentCharge: Int64 = 4352

    /// - Parameter first: Where both streams begin; 0 but for tests of long ones.
    init(_ side: Side, _ stack: StackPreset, clockPhase: Nanoseconds, readsAtOnce: Bool, first: Int64 = 0) {
        self.side = side
        self.stack = stack
        self.clockPhase = clockPhase
        reassembly = Reassembly(readsAtOnce: readsAtOnce, first: first)
        sender = Sender(stack, first: first)
    }

    /// What a segment brought for the application.
    struct Delivery: Sendable {
        var isEstablished = false
        var bytes: Int64 = 0
        var isFinal = false
        var isReset = false
        var hasRoom = false
    }

    /// How many more bytes the application may hand over; below zero if it has handed over more.
    var sendRoom: Int64 { sendBytesLimit - sender.bytesHeld }

    var nextDeadline: Int64 { min(senderDeadline, min(ackDeadline, handshakeDeadline)) }

    // MARK: What the application does

    /// Sends the SYN, after the name look-up if that takes time.
    mutating func open(after lookUp: Int64, at now: Int64) {
        phase = .synSent
        if lookUp > 0 {
            handshakeDeadline = now + lookUp
        } else {
            sendHandshake(.syn, at: now)
        }
    }

    mutating func write(_ bytes: Int64, at now: Int64) {
        sender.write(bytes)
        if sendRoom <= 0 { isFull = true }
        if phase == .established { push(at: now) }
    }

    mutating func finish(at now: Int64) {
        guard !sender.isFinished else { return }
        sender.finish()
        if phase == .established { push(at: now) }
    }

    /// The application takes `bytes`; the window may open again.
    mutating func read(_ bytes: Int64, at now: Int64) {
        if reassembly.read(bytes) && phase == .established { sendAck(at: now) }
    }

    /// The socket is gone: nothing more is sent but a RST, if `afterSending` says so after everything handed over.
    mutating func abort(afterSending: Bool = false, at now: Int64) {
        guard phase != .reset else { return }
        resetsWhenSent = afterSending && sender.bytesUnsent > 0
        if resetsWhenSent { return }
        // Nobody knows of it yet: a SYN that comes will be answered by a RST.
        let isUnknown = phase == .closed || (phase == .synSent && handshakeTries == 0)
        phase = .reset
        stopTimers()
        if !isUnknown { outbox.append(Segment(kind: .reset)) }
    }

    // MARK: What the link brings

    mutating func receive(_ segment: Segment, at now: Int64) -> Delivery {
        var delivery = Delivery()
        defer { resetIfSent(at: now) }
        if phase == .reset {
            // A segment for a socket that is gone is answered by a RST (RFC 9293, 3.10.7.1).
            if segment.kind != .reset { outbox.append(Segment(kind: .reset)) }
            return delivery
        }
        switch segment.kind {
        case .reset:
            phase = .reset
            stopTimers()
            delivery.isReset = true
        case .syn:
            answerSyn(segment, at: now)
        case .synAck:
            if phase == .synSent {
                let roundTrip = handshakeTries == 1 ? now - firstHandshakeAt : now - segment.echo + 1
                let isSpurious = segment.echo == firstHandshakeAt + 1
                establish(segment, roundTrip: roundTrip, repeats: isSpurious ? 0 : handshakeTries - 1, at: now)
                delivery.isEstablished = true
                sendAck(at: now)
                push(at: now)
            } else {
                sendAck(at: now)  // ours was lost
            }
        case .ack, .data:
            if phase == .synReceived {
                establish(
                    segment, roundTrip: handshakeTries == 1 ? now - firstHandshakeAt : nil, repeats: 0, at: now)
                delivery.isEstablished = true
            }
            guard phase == .established else { return delivery }
            sender.take(segment, at: now, &orders)
            noteRoom(&delivery)
            if segment.isProbe {
                owesAck = true
            } else if segment.kind == .data {
                takeData(segment, &delivery, at: now)
            } else {
                reassembly.takeEmpty(segment)
            }
            // What goes out carries the ACK; if nothing does, it goes alone, before the application has its say.
            sendOrders(at: now)
            if delivery.isEstablished { push(at: now) }
            if owesAck { sendAck(at: now) }
        }
        return delivery
    }

    /// Runs whatever is due at `now`.
    mutating func runTimers(at now: Int64) {
        if handshakeDeadline <= now {
            handshakeDeadline = .max
            if phase == .synSent { sendHandshake(.syn, at: now) }
            if phase == .synReceived { sendHandshake(.synAck, at: now) }
        }
        if senderDeadline <= now {
            senderDeadline = .max
            sender.timerFired(at: now, &orders)
            sendOrders(at: now)
        }
        if ackDeadline <= now { sendAck(at: now) }
        resetIfSent(at: now)
    }

    // MARK: Inside

    private mutating func resetIfSent(at now: Int64) {
        if resetsWhenSent && sender.bytesUnsent == 0 { abort(at: now) }
    }

    private mutating func answerSyn(_ segment: Segment, at now: Int64) {
        switch phase {
        case .closed:
            phase = .synReceived
            reassembly.begin(echoing: segment.timestamp, at: now)
            sendHandshake(.synAck, at: now)
        case .synReceived:
            // The SYN again: so is its answer, without touching the timer (`tcp_check_req`).
            outbox.append(stamped(Segment(kind: .synAck), at: now))
        default:
            sendAck(at: now)
        }
    }

    private mutating func sendHandshake(_ kind: Segment.Kind, at now: Int64) {
        outbox.append(stamped(Segment(kind: kind), at: now))
        let span = kind == .syn ? stack.synTimeout(after: handshakeTries) : stack.synAckTimeout(after: handshakeTries)
        if handshakeTries == 0 { firstHandshakeAt = now }
        handshakeTries += 1
        handshakeDeadline = expiry(span.count, at: now)
    }

    private mutating func establish(_ segment: Segment, roundTrip: Int64?, repeats: Int, at now: Int64) {
        phase = .established
        handshakeDeadline = .max
        reassembly.begin(echoing: segment.timestamp, at: now)
        // A SYN-ACK acknowledges nothing yet.
        let acknowledged = max(segment.acknowledges, sender.acknowledged)
        sender.begin(roundTrip: roundTrip, afterRepeats: repeats, window: acknowledged + segment.window, at: now)
    }

    private mutating func takeData(_ segment: Segment, _ delivery: inout Delivery, at now: Int64) {
        let result = reassembly.take(
            segment, timeout: sender.estimator.timeout, delayedAck: stack.delayedAck.count, at: now)
        delivery.bytes = result.delivered
        delivery.isFinal = result.isFinal
        switch result.reply {
        case .none: break
        case .acknowledge: owesAck = true
        case .acknowledgeLater where ackDeadline == .max:
            ackDeadline = expiry(stack.delayedAck.count, at: now)
        case .acknowledgeLater: break
        }
    }

    /// `sk_stream_write_space`: there is room once a third is free.
    private mutating func noteRoom(_ delivery: inout Delivery) {
        sendBytesLimit = max(sendBytesLimit, min(Self.sendBytesMax, 2 * Self.segmentCharge * sender.cubic.window))
        guard isFull, sender.bytesHeld <= 2 * sendBytesLimit / 3 else { return }
        isFull = false
        delivery.hasRoom = true
    }

    private mutating func push(at now: Int64) {
        sender.push(at: now, &orders)
        sendOrders(at: now)
    }

    private mutating func sendOrders(at now: Int64) {
        for order in orders {
            reassembly.noteSending(at: now)
            var segment = Segment(kind: .data)
            segment.start = order.start
            segment.end = order.end
            segment.isFinal = order.isFinal
            segment.isProbe = order.isProbe
            segment.isPushed = order.end == sender.streamEnd
            outbox.append(acknowledging(segment, at: now))
        }
        orders.removeAll(keepingCapacity: true)
        noteTimer(at: now)
    }

    private mutating func sendAck(at now: Int64) {
        var segment = Segment(kind: .ack)
        segment.start = sender.next
        segment.end = sender.next
        outbox.append(acknowledging(segment, at: now))
    }

    private mutating func acknowledging(_ segment: Segment, at now: Int64) -> Segment {
        var segment = stamped(segment, at: now)
        segment.acknowledges = reassembly.next
        segment.saysDuplicate = reassembly.owesDuplicate
        segment.sacks = reassembly.acknowledge()
        owesAck = false
        ackDeadline = .max
        return segment
    }

    private mutating func stamped(_ segment: Segment, at now: Int64) -> Segment {
        var segment = segment
        segment.timestamp = now + 1  // 0 is no timestamp
        segment.echo = reassembly.echo
        segment.window = reassembly.offerWindow()
        return segment
    }

    private mutating func noteTimer(at now: Int64) {
        if sender.timerGeneration == senderGeneration { return }
        senderGeneration = sender.timerGeneration
        senderDeadline = sender.timer == .none ? .max : expiry(sender.timerSpan, at: now)
    }

    private mutating func stopTimers() {
        senderDeadline = .max
        ackDeadline = .max
        handshakeDeadline = .max
    }

    private func expiry(_ span: Int64, at now: Int64) -> Int64 {
        guard stack.hasTimerWheel else { return now + span }
        return Wheel.expiry(Nanoseconds(span), armedAt: Instant(Nanoseconds(now)), phase: clockPhase).sinceStart.count
    }
}
