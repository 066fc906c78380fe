internal import HeapModule
internal import LinkModel
internal import NIOCore
internal import PacketCapture
internal import ProxyServer
internal import Synchronization
internal import TCPModel

/// What a proxy's modelled link carries, as a capture that Wireshark reads.
///
/// It stands at one end of the link, as a real capture does: what that end sends is there when it is sent, also what is lost
/// then, with a comment; what comes is there when it arrives.
final class LinkCapture: Sendable {
    /// A packet that waits until everything before it is known.
    private struct Waiting: Comparable {
        let time: Int64
        let number: Int
        let block: [UInt8]

        static func < (left: Waiting, right: Waiting) -> Bool {
            left.time != right.time ? left.time < right.time : left.number < right.number
        }

        static func == (left: Waiting, right: Waiting) -> Bool { left.number == right.number }
    }

    private struct State {
        var waiting = Heap<Waiting>()
        var count = 0
    }

    private let file: CaptureFile
    private let end: Side
    private let state = Mutex(State())

    /// - Parameter end: Where the capture stands.
    init(_ path: String, at end: Side, interface: String) throws(CaptureFile.CannotCreate) {
        self.end = end
        file = try CaptureFile(
            path, head: PcapNG.head(application: "slowlane \(SlowlaneVersion.current)", interface: interface))
    }

    /// Takes a packet. They come in the order in which they are offered to the link.
    func take(_ packet: CarriedPacket) {
        let record = packet.record
        let isOutbound = record.direction == end.sendDirection
        let time = (isOutbound ? record.time : record.arrival).sinceStart.count
        // What was lost on its way here was never here. Of what was lost on its way from here the bytes come again: without them
        // a reader puts the stream together from those that arrived.
        if record.fate != .arrives && !isOutbound { return }
        let payload = record.fate == .arrives ? packet.payload : nil
        let bytes = PacketPicture(ports: packet.ports).bytes(
            of: record, payload: payload.map { Array($0.readableBytesView) })
        let block = PcapNG.packet(
            at: packet.startUnixNanoseconds + time, captured: bytes, length: record.bytes, isOutbound: isOutbound,
            comment: PacketPicture.comment(record, cause: packet.cause))
        state.withLock { state in
            state.waiting.insert(Waiting(time: time, number: state.count, block: block))
            state.count += 1
            // Nothing that is offered later can be there before this.
            while let first = state.waiting.min, first.time <= record.time.sinceStart.count {
                file.append(state.waiting.removeMin().block)
            }
        }
    }

    /// Writes the rest; gives what could not be written, and why.
    func close() -> (packets: Int, reason: String?) {
        state.withLock { state in
            while let next = state.waiting.popMin() { file.append(next.block) }
        }
        file.close()
        return file.loss
    }
}
