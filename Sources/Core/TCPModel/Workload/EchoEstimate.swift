public import Determinism
public import LinkModel

/// The time of one echo, computed from a profile's figures alone.
///
/// The estimate is a check of the TCP model and therefore independent of it: both have only the figures and the packet
/// sizes in common.
public enum EchoEstimate {
    /// Returns the time from connect() to the last byte of an echo of `size` bytes, on a connection that has the link
    /// to itself.
    ///
    /// The result is exact for sizes within TCP's initial window of ten segments on links without loss or jitter.
    public static func time(ofBytes size: Int, under conditions: Conditions) -> Nanoseconds {
        let (up, down) = (conditions.up, conditions.down)
        func serializationTime(_ bytes: Int, on direction: DirectionConditions) -> Nanoseconds {
            direction.rate?.serializationTime(ofBytes: bytes) ?? .zero
        }
        // SYN up, SYN-ACK down; the ACK leaves just before the first byte.
        let established =
            conditions.dnsDelay + serializationTime(PacketSize.handshake, on: up) + up.delay
            + serializationTime(PacketSize.handshake, on: down) + down.delay
        var upFreeAt = established + serializationTime(PacketSize.header, on: up)
        var downFreeAt = Nanoseconds.zero
        var left = size
        while left > 0 {
            let packet = PacketSize.header + min(left, PacketSize.segmentMax)
            left -= min(left, PacketSize.segmentMax)
            upFreeAt = upFreeAt + serializationTime(packet, on: up)
            downFreeAt = max(downFreeAt, upFreeAt + up.delay) + serializationTime(packet, on: down)
        }
        return downFreeAt + down.delay
    }
}
