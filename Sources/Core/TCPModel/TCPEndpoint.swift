internal import Determinism
internal import LinkModel

/// One end of a modelled connection: the state of a kernel's TCP socket, counting bytes.
///
/// Combines the ``Receiver``, the ``Sender`` and the handshake. Segments to send are appended to ``outbox``; timers are
/// deadlines that the link fires.
struct TCPEndpoint: Sendable {
    enum State: Sendable { case closed, synSent, synReceived, established, reset }

    let side: Side
    private(set) var state = State.closed
    private let stack: StackPreset
    /// The offset of this kernel's clock from the link's, which determines the phase of its timer ticks.
    private let clockPhase: Nanoseconds
    private(set) var sender: Sender
    private(set) var receiver: Receiver
    /// The segments to offer to the link, in order.
    var outbox: [Segment] = []
    private var outgoing: [Sender.OutgoingSegment] = []

    /// The deadline of the sender's timer; `.max` means none.
    private(set) var senderDeadline = Int64.max
    private var senderTimerGeneration = 0
    /// The deadline of a delayed ACK.
    private(set) var ackDeadline = Int64.max
    /// The deadline of the SYN's or SYN-ACK's retransmission.
    private(set) var handshakeDeadline = Int64.max
    private var handshakeTries = 0
    private var firstHandshakeAt: Int64 = 0
    /// The size of the send buffer, which grows with the congestion window.
    private var sendBufferSize = Self.sendBufferSizeInitial
    private var isSendBufferFull = false
    /// Whether a RST follows once all written data has been sent.
    private var abortsAfterSending = false
    /// Whether an ACK must be sent now, alone or with data.
    private var needsAck = false

    /// `tcp_sndbuf_expand`: twice the congestion window, at 4352 bytes per segment; 10 segments at first, `tcp_wmem[2]`
    /// at most.
    private static let sendBufferSizeInitial: Int64 = 2 * 10 * segmentTruesize
    private static let sendBufferSizeMax: Int64 = 4 << 20
    private static let segmentTruesize: Int64 = 4352

    /// Creates an endpoint.
    ///
    /// - Parameter first: The sequence number of the first byte of both streams; other than 0 in tests of long streams
    ///   only.
    init(_ side: Side, _ stack: StackPreset, clockPhase: Nanoseconds, readsImmediately: Bool, first: Int64 = 0) {
        self.side = side
        self.stack = stack
        self.clockPhase = clockPhase
        receiver = Receiver(readsImmediately: readsImmediately, first: first)
        sender = Sender(stack, first: first)
    }

    /// The effects of a received segment on the application.
    struct ReceiveResult: Sendable {
        var isEstablished = false
        var bytes: Int64 = 0
        var isFinal = false
        var isReset = false
        var isWritable = false
    }

    /// The free bytes of the send buffer; negative if the application has written more.
    var sendBufferSpace: Int64 { sendBufferSize - sender.bytesHeld }

    var nextDeadline: Int64 { min(senderDeadline, min(ackDeadline, handshakeDeadline)) }

    // MARK: Application

    /// Sends the SYN, after a DNS lookup of `lookup` nanoseconds.
    mutating func open(after lookup: Int64, at now: Int64) {
        state = .synSent
        if lookup > 0 {
            handshakeDeadline = now + lookup
        } else {
            sendHandshake(.syn, at: now)
        }
    }

    mutating func write(_ bytes: Int64, at now: Int64) {
        guard !sender.isFinished else { return }
        sender.write(bytes)
        if sendBufferSpace <= 0 { isSendBufferFull = true }
        if state == .established { push(at: now) }
    }

    mutating func finish(at now: Int64) {
        guard !sender.isFinished else { return }
        sender.finish()
        if state == .established { push(at: now) }
    }

    /// Records that the application has read `bytes`; the window may open.
    mutating func read(_ bytes: Int64, at now: Int64) {
        if receiver.read(bytes) && state == .established { sendAck(at: now) }
    }

    /// Aborts the connection with a RST, at once or, with `afterSending`, after all written data has been sent.
    mutating func abort(afterSending: Bool = false, at now: Int64) {
        guard state != .reset else { return }
        abortsAfterSending = afterSending && sender.bytesUnsent > 0
        if abortsAfterSending { return }
        // No segment has been sent yet: the peer does not know the connection, and a SYN that arrives gets a RST.
        let isUnknownToPeer = state == .closed || (state == .synSent && handshakeTries == 0)
        state = .reset
        stopTimers()
        if !isUnknownToPeer { outbox.append(Segment(kind: .reset)) }
    }

    // MARK: Link

    /// Processes an arriving segment.
    mutating func receive(_ segment: Segment, at now: Int64) -> ReceiveResult {
        var result = ReceiveResult()
        defer { abortIfSent(at: now) }
        if state == .reset {
            // A segment for a closed socket gets a RST (RFC 9293, 3.10.7.1).
            if segment.kind != .reset { outbox.append(Segment(kind: .reset)) }
            return result
        }
        switch segment.kind {
        case .reset:
            state = .reset
            stopTimers()
            result.isReset = true
        case .syn:
            receiveSYN(segment, at: now)
        case .synAck:
            if state == .synSent {
                let roundTrip =
                    handshakeTries == 1 ? now - firstHandshakeAt : now - segment.timestampEcho + 1
                let isSpurious = segment.timestampEcho == firstHandshakeAt + 1
                establish(
                    segment, roundTrip: roundTrip, synRetransmissions: isSpurious ? 0 : handshakeTries - 1, at: now)
                result.isEstablished = true
                sendAck(at: now)
                push(at: now)
            } else {
                sendAck(at: now)  // the previous ACK was lost
            }
        case .ack, .data:
            if state == .synReceived {
                establish(
                    segment, roundTrip: handshakeTries == 1 ? now - firstHandshakeAt : nil, synRetransmissions: 0,
                    at: now)
                result.isEstablished = true
            }
            guard state == .established else { return result }
            sender.receive(segment, at: now, &outgoing)
            updateSendBuffer(&result)
            if segment.isWindowProbe {
                needsAck = true
            } else if segment.kind == .data {
                receiveData(segment, &result, at: now)
            } else {
                receiver.receiveEmpty(segment)
            }
            // Data carries the ACK. Without data, the ACK is sent alone, before the application responds.
            sendOutgoing(at: now)
            if result.isEstablished { push(at: now) }
            if needsAck { sendAck(at: now) }
        }
        return result
    }

    /// Fires the timers that are due at `now`.
    mutating func fireTimers(at now: Int64) {
        if handshakeDeadline <= now {
            handshakeDeadline = .max
            if state == .synSent { sendHandshake(.syn, at: now) }
            if state == .synReceived { sendHandshake(.synAck, at: now) }
        }
        if senderDeadline <= now {
            senderDeadline = .max
            sender.fireTimer(at: now, &outgoing)
            sendOutgoing(at: now)
        }
        if ackDeadline <= now { sendAck(at: now) }
        abortIfSent(at: now)
    }

    // MARK: Private

    private mutating func abortIfSent(at now: Int64) {
        if abortsAfterSending && sender.bytesUnsent == 0 { abort(at: now) }
    }

    private mutating func receiveSYN(_ segment: Segment, at now: Int64) {
        switch state {
        case .closed:
            state = .synReceived
            receiver.establish(timestamp: segment.timestamp, at: now)
            sendHandshake(.synAck, at: now)
        case .synReceived:
            // A retransmitted SYN gets the SYN-ACK again, without a change of the timer (`tcp_check_req`).
            appendHandshake(.synAck, at: now)
        default:
            sendAck(at: now)
        }
    }

    private mutating func sendHandshake(_ kind: Segment.Kind, at now: Int64) {
        appendHandshake(kind, at: now)
        let span = kind == .syn ? stack.synTimeout(after: handshakeTries) : stack.synAckTimeout(after: handshakeTries)
        if handshakeTries == 0 { firstHandshakeAt = now }
        handshakeTries += 1
        handshakeDeadline = expiry(span.count, at: now)
    }

    private mutating func appendHandshake(_ kind: Segment.Kind, at now: Int64) {
        var segment = Segment(kind: kind)
        addTimestamps(to: &segment, at: now)
        outbox.append(segment)
    }

    private mutating func establish(
        _ segment: Segment, roundTrip: Int64?, synRetransmissions: Int, at now: Int64
    ) {
        state = .established
        handshakeDeadline = .max
        receiver.establish(timestamp: segment.timestamp, at: now)
        // A SYN-ACK acknowledges no data.
        let ackNumber = max(segment.ackNumber, sender.sndUna)
        sender.establish(
            roundTrip: roundTrip, synRetransmissions: synRetransmissions, window: ackNumber + segment.window, at: now)
    }

    private mutating func receiveData(_ segment: Segment, _ result: inout ReceiveResult, at now: Int64) {
        let received = receiver.receive(
            segment, rto: sender.estimator.rto, delayedAck: stack.delayedAck.count, at: now)
        result.bytes = received.delivered
        result.isFinal = received.isFinal
        switch received.acknowledgment {
        case .immediate: needsAck = true
        case .delayed: if ackDeadline == .max { ackDeadline = expiry(stack.delayedAck.count, at: now) }
        }
    }

    /// Grows the send buffer, and reports it writable once a third is free (`sk_stream_write_space`).
    private mutating func updateSendBuffer(_ result: inout ReceiveResult) {
        sendBufferSize = max(
            sendBufferSize, min(Self.sendBufferSizeMax, 2 * Self.segmentTruesize * sender.cubic.cwnd))
        guard isSendBufferFull, sender.bytesHeld <= 2 * sendBufferSize / 3 else { return }
        isSendBufferFull = false
        result.isWritable = true
    }

    private mutating func push(at now: Int64) {
        sender.push(at: now, &outgoing)
        sendOutgoing(at: now)
    }

    private mutating func sendOutgoing(at now: Int64) {
        for output in outgoing {
            receiver.recordSend(at: now)
            var segment = Segment(kind: .data)
            segment.start = output.start
            segment.end = output.end
            segment.isFIN = output.isFIN
            segment.isWindowProbe = output.isWindowProbe
            segment.isPSH = output.end == sender.writeEnd
            acknowledge(with: &segment, at: now)
            outbox.append(segment)
        }
        outgoing.removeEach()
        updateSenderDeadline(at: now)
    }

    private mutating func sendAck(at now: Int64) {
        var segment = Segment(kind: .ack)
        segment.start = sender.sndNxt
        segment.end = sender.sndNxt
        acknowledge(with: &segment, at: now)
        outbox.append(segment)
    }

    /// Adds an acknowledgment to a segment.
    private mutating func acknowledge(with segment: inout Segment, at now: Int64) {
        addTimestamps(to: &segment, at: now)
        segment.ackNumber = receiver.rcvNxt
        segment.isDSACK = receiver.needsDSACK
        segment.sackBlocks = receiver.acknowledge()
        needsAck = false
        ackDeadline = .max
    }

    /// Adds timestamps and the window to a segment.
    private mutating func addTimestamps(to segment: inout Segment, at now: Int64) {
        segment.timestamp = now + 1  // 0 is no timestamp
        segment.timestampEcho = receiver.timestampRecent
        segment.window = receiver.advertiseWindow()
    }

    private mutating func updateSenderDeadline(at now: Int64) {
        if sender.timerGeneration == senderTimerGeneration { return }
        senderTimerGeneration = sender.timerGeneration
        senderDeadline = sender.timer == .none ? .max : expiry(sender.timerSpan, at: now)
    }

    private mutating func stopTimers() {
        senderDeadline = .max
        ackDeadline = .max
        handshakeDeadline = .max
    }

    private func expiry(_ span: Int64, at now: Int64) -> Int64 {
        guard stack.hasTimerWheel else { return now + span }
        return KernelTimerWheel.expiry(Nanoseconds(span), armedAt: Instant(Nanoseconds(now)), phase: clockPhase)
            .sinceStart.count
    }
}

extension Array {
    /// Removes the elements, and keeps the storage. For few elements this is faster than `removeAll(keepingCapacity:)`, which
    /// replaces a range.
    @inline(__always)
    mutating func removeEach() { while popLast() != nil {} }
}
