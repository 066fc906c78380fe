internal import LinkModel
internal import NIOCore
internal import PacketCapture
internal import ProxyServer

/// What a proxy's modelled link carries, as a capture that Wireshark reads.
///
/// Each packet stands where it is offered to the link, so that those that are lost are there too; what became of it is its
/// comment.
enum LinkCapture {
    static func writer(to file: CaptureFile) -> @Sendable (CarriedPacket) -> Void {
        { packet in
            let record = packet.record
            let bytes = PacketPicture(ports: packet.ports)
                .bytes(of: record, payload: packet.payload.map { Array($0.readableBytesView) })
            file.append(
                PcapNG.packet(
                    at: packet.unixNanoseconds, captured: bytes, length: record.bytes,
                    isOutbound: record.direction == .up,
                    comment: PacketPicture.comment(record, cause: packet.cause)))
        }
    }
}
