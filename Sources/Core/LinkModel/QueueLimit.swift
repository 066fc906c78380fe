internal import Determinism

/// The limit of a direction's drop-tail queue, in packets or in bytes.
///
/// As in dummynet (`dummynet_io` in xnu's `ip_dummynet.c`), a packet is dropped when the queue holds as many packets as
/// the limit, or more bytes than the limit. The packet being transmitted counts as queued.
public enum QueueLimit: Hashable, Sendable, CustomStringConvertible {
    /// Packets, within ``packetsAllowed``.
    case packets(Int)
    /// Bytes of whole IP packets, within ``bytesAllowed``.
    case bytes(Int)

    /// The supported limits in packets.
    public static let packetsAllowed = 1...100_000
    /// The supported limits in bytes.
    public static let bytesAllowed = 1...150_000_000

    /// Creates a limit in packets, or `nil` outside ``packetsAllowed``.
    public init?(packets: Int) {
        guard QueueLimit.packetsAllowed.contains(packets) else { return nil }
        self = .packets(packets)
    }

    /// Creates a limit in bytes, or `nil` outside ``bytesAllowed``.
    public init?(bytes: Int) {
        guard QueueLimit.bytesAllowed.contains(bytes) else { return nil }
        self = .bytes(bytes)
    }

    /// 50 packets: dummynet's default (`set_fs_parms` in xnu's `ip_dummynet.c`), which Apple's Network Link Conditioner
    /// uses.
    public static let standard = QueueLimit.packets(50)

    /// Returns whether a queue of this length drops another packet.
    func isFull(packets: Int, bytes: Int) -> Bool {
        switch self {
        case .packets(let limit): packets >= limit
        case .bytes(let limit): bytes > limit
        }
    }

    /// The limit in bytes for display; packets count as 1500 bytes.
    public var approximateBytes: Int {
        switch self {
        case .packets(let limit): Int(Int64(limit).multipliedSaturating(by: 1500))
        case .bytes(let limit): limit
        }
    }

    public var description: String {
        switch self {
        case .packets(let limit): "\(limit) packet\(limit == 1 ? "" : "s")"
        case .bytes(let limit): "\(limit) bytes"
        }
    }
}
