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

/// A packet that entered a proxy's modelled link, with its fate.
public struct PacketEvent: Sendable {
    /// The packet and its fate.
    public let record: PacketRecord
    /// The payload; `nil` if the packet has none or its bytes are no longer held.
    public let payload: ByteBuffer?
    /// The fault that produced the packet, if any.
    public let cause: String?
    /// The client's port (`up`) and the upstream's (`down`).
    public let ports: PerDirection<UInt16>
    /// The start of the model's time, in nanoseconds since 1970.
    public let startUnixNanoseconds: Int64

    /// The time of day, in nanoseconds since 1970.
    static var unixNanosecondsNow: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
