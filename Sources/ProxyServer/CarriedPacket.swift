internal import Impairment
public import LinkModel
public import NIOCore
public import TCPModel

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A packet that the modelled link of a proxy was offered.
public struct CarriedPacket: Sendable {
    /// The packet, and what became of it.
    public let record: PacketRecord
    /// Its payload, as far as it was still held.
    public let payload: ByteBuffer?
    /// The fault that made it, if one did.
    public let cause: String?
    /// The client's port, and the upstream's.
    public let ports: PerDirection<UInt16>
    /// When the model's time began, in nanoseconds since 1970.
    public let startUnixNanoseconds: Int64

    /// The time of day, in nanoseconds since 1970.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
