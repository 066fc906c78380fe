/// The length of a direction's drop-tail queue, in packets or in bytes.
///
/// As in dummynet (`dummynet_io` in xnu's `ip_dummynet.c`): a packet finds no place when there are already as many
/// packets as the limit says, or more bytes than it says. The packet being sent counts.
public enum QueueLimit: Hashable, Sendable, CustomStringConvertible {
    /// Packets, within ``packetsAllowed``.
    case packets(Int)
    /// Bytes of whole IP packets, within ``bytesAllowed``.
    case bytes(Int)

    /// The lengths in packets that can be modelled.
    public static let packetsAllowed = 1...100_000
    /// The lengths in bytes that can be modelled.
    public static let bytesAllowed = 1...150_000_000

    /// Creates a length in packets, or `nil` outside ``packetsAllowed``.
    public init?(packets: Int) {
        guard QueueLimit.packetsAllowed.contains(packets) else { return nil }
        self = .packets(packets)
    }

    /// Creates a length in bytes, or `nil` outside ``bytesAllowed``.
    public init?(bytes: Int) {
        guard QueueLimit.bytesAllowed.contains(bytes) else { return nil }
        self = .bytes(bytes)
    }

    /// 50 packets: what dummynet gives a pipe that does not ask (`set_fs_parms` in xnu's `ip_dummynet.c`), and
    /// so what Apple's Network Link Conditioner runs with.
    public static let standard = QueueLimit.packets(50)

    /// Whether a queue of so much has no place for another packet.
    func isFull(packets: Int, bytes: Int) -> Bool {
        switch self {
        case .packets(let limit): packets >= limit
        case .bytes(let limit): bytes > limit
        }
    }

    /// About as many bytes as fit, for people: packets count 1500.
    public var bytesAtMost: Int {
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
