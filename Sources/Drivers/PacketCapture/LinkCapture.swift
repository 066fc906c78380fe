internal import Determinism
internal import HeapModule
public import LinkModel
public import NIOCore
internal import Synchronization
public import TCPModel

/// A pcapng file of the packets on a modelled link, as captured at one of its ends.
///
/// Packets that this end sends appear at the time they are sent, lost ones with a comment; packets that it receives
/// appear at the time they arrive.
public final class LinkCapture: Sendable {
    /// A packet that is written when no packet with an earlier time can follow.
    private struct PendingPacket: Comparable {
        let time: Int64
        let number: Int
        let block: [UInt8]

        static func < (left: PendingPacket, right: PendingPacket) -> Bool {
            left.time != right.time ? left.time < right.time : left.number < right.number
        }

        static func == (left: PendingPacket, right: PendingPacket) -> Bool { left.number == right.number }
    }

    private struct State {
        var pending = Heap<PendingPacket>()
        var count = 0
    }

    private let file: CaptureFile
    private let end: Side
    private let state = Mutex(State())

    /// Creates the file.
    ///
    /// - Parameters:
    ///   - end: The end of the link at which the capture is taken.
    ///   - application: The program's name and version, for the file's header.
    ///   - interface: The link's name, for the file's header.
    public init(
        _ path: String, at end: Side, application: String, interface: String
    ) throws(CaptureFile.CreationError) {
        self.end = end
        file = try CaptureFile(path, header: PcapNG.header(application: application, interface: interface))
    }

    /// Appends a packet. Packets must be appended in the order in which they enter the link.
    ///
    /// - Parameters:
    ///   - payload: The payload; `nil` if the packet has none or its bytes are no longer held.
    ///   - cause: The fault that produced the packet, if any.
    ///   - ports: The ports of the client (`up`) and of the server (`down`).
    ///   - startUnixNanoseconds: The start of the model's time, in nanoseconds since 1970.
    public func append(
        _ record: PacketRecord, payload: ByteBuffer?, cause: String?, ports: PerDirection<UInt16>,
        startUnixNanoseconds: Int64
    ) {
        let isOutbound = record.direction == end.sendDirection
        let time = (isOutbound ? record.time : record.arrival).sinceStart.count
        // Packets that are lost on their way to this end do not appear in its capture.
        if record.fate != .arrives && !isOutbound { return }
        // The bytes of lost packets follow in retransmissions. Without the first copy, a reader reassembles the stream
        // from the retransmissions.
        let payload = record.fate == .arrives ? payload : nil
        let bytes = IPv4PacketEncoder(ports: ports).encode(record, payload: payload.map { Array($0.readableBytesView) })
        let block = PcapNG.packet(
            at: startUnixNanoseconds + time, captured: bytes, length: record.bytes, isOutbound: isOutbound,
            comment: IPv4PacketEncoder.comment(for: record, cause: cause))
        state.withLock { state in
            state.pending.insert(PendingPacket(time: time, number: state.count, block: block))
            state.count += 1
            // Packets that enter the link later are not sent or received before this time.
            while let first = state.pending.min, first.time <= record.time.sinceStart.count {
                file.append(state.pending.removeMin().block)
            }
        }
    }

    /// Writes the remaining packets and closes the file. Returns the number of packets that could not be written, and
    /// the cause.
    public func close() -> (packets: Int, reason: String?) {
        state.withLock { state in
            while let next = state.pending.popMin() { file.append(next.block) }
        }
        file.close()
        return file.loss
    }
}
