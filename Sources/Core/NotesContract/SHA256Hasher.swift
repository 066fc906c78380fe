/// An incremental computation of SHA-256 (FIPS 180-4). Its state can be stored and continued later.
public struct SHA256Hasher: Hashable, Sendable {
    private var words: [UInt32]
    /// The bytes since the last complete block.
    private var pending: [UInt8] = []
    /// The number of bytes hashed so far.
    public private(set) var count: UInt64 = 0

    private static let blockBytes = 64
    private static let wordsCount = 8
    /// The bytes of a stored state before the pending ones: the words and the count.
    private static let stateBytesMin = wordsCount * 4 + 8

    /// Creates the state before the first byte.
    public init() {
        words = [
            0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
        ]
    }

    /// Restores a state from ``state``; `nil` if the bytes are not a state.
    public init?(state: [UInt8]) {
        guard state.count >= Self.stateBytesMin else { return nil }
        words = (0..<Self.wordsCount).map { index in
            state[index * 4..<index * 4 + 4].reduce(0) { $0 << 8 | UInt32($1) }
        }
        count = state[Self.wordsCount * 4..<Self.stateBytesMin].reduce(0) { $0 << 8 | UInt64($1) }
        pending = Array(state[Self.stateBytesMin...])
        guard pending.count == Int(count % UInt64(Self.blockBytes)) else { return nil }
    }

    /// The state as bytes, at most 103.
    public var state: [UInt8] { Self.bytes(of: words) + Self.bytes(of: count) + pending }

    /// Adds bytes to the message.
    public mutating func update(_ bytes: some Collection<UInt8>) {
        if bytes.withContiguousStorageIfAvailable({ update($0) }) == nil {
            Array(bytes).withUnsafeBufferPointer { update($0) }
        }
    }

    private mutating func update(_ bytes: UnsafeBufferPointer<UInt8>) {
        count &+= UInt64(bytes.count)
        var rest = bytes[...]
        if !pending.isEmpty {
            let some = rest.prefix(Self.blockBytes - pending.count)
            pending.append(contentsOf: some)
            rest = rest.dropFirst(some.count)
            guard pending.count == Self.blockBytes else { return }
            let block = pending
            pending = []
            block.withUnsafeBufferPointer { Self.add($0, to: &words) }
        }
        let whole = rest.count / Self.blockBytes * Self.blockBytes
        Self.add(UnsafeBufferPointer(rebasing: rest.prefix(whole)), to: &words)
        pending.append(contentsOf: rest.dropFirst(whole))
    }

    /// Returns the digest of the message so far: 32 bytes.
    public func digest() -> [UInt8] {
        var words = words
        var last = pending
        last.reserveCapacity(2 * Self.blockBytes)
        last.append(0x80)
        while last.count % Self.blockBytes != Self.blockBytes - 8 { last.append(0) }
        last += Self.bytes(of: count &* 8)
        last.withUnsafeBufferPointer { Self.add($0, to: &words) }
        return Self.bytes(of: words)
    }

    private static func bytes(of words: [UInt32]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(words.count * 4)
        for word in words {
            for shift: UInt32 in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: word &>> shift)) }
        }
        return bytes
    }

    private static func bytes(of count: UInt64) -> [UInt8] {
        stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: count >> UInt64($0)) }
    }

    /// Adds complete blocks to a state. The loops use pointers, because a debug build checks each access to an array.
    private static func add(_ bytes: UnsafeBufferPointer<UInt8>, to words: inout [UInt32]) {
        guard var block = bytes.baseAddress else { return }
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { schedule in
            guard let schedule = schedule.baseAddress else { return }
            constants.withUnsafeBufferPointer { constants in
                for _ in 0..<bytes.count / blockBytes {
                    add(block, schedule, constants, to: &words)
                    block += blockBytes
                }
            }
        }
    }

    private static func add(
        _ block: UnsafePointer<UInt8>, _ schedule: UnsafeMutablePointer<UInt32>,
        _ constants: UnsafeBufferPointer<UInt32>, to words: inout [UInt32]
    ) {
        var index = 0
        while index < 16 {
            let byte = block + index * 4
            schedule[index] = UInt32(byte[0]) << 24 | UInt32(byte[1]) << 16 | UInt32(byte[2]) << 8 | UInt32(byte[3])
            index += 1
        }
        while index < 64 {
            let (near, far) = (schedule[index - 15], schedule[index - 2])
            let first = rotated(near, 7) ^ rotated(near, 18) ^ near >> 3
            let second = rotated(far, 17) ^ rotated(far, 19) ^ far >> 10
            schedule[index] = schedule[index - 16] &+ first &+ schedule[index - 7] &+ second
            index += 1
        }
        var (a, b, c, d) = (words[0], words[1], words[2], words[3])
        var (e, f, g, h) = (words[4], words[5], words[6], words[7])
        index = 0
        while index < 64 {
            let choice = (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) &+ (e & f ^ ~e & g)
            let first = h &+ choice &+ constants[index] &+ schedule[index]
            let second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) &+ (a & b ^ a & c ^ b & c)
            (h, g, f, e, d, c, b, a) = (g, f, e, d &+ first, c, b, a, first &+ second)
            index += 1
        }
        words[0] &+= a
        words[1] &+= b
        words[2] &+= c
        words[3] &+= d
        words[4] &+= e
        words[5] &+= f
        words[6] &+= g
        words[7] &+= h
    }

    @inline(__always)
    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word &>> count | word &<< (32 &- count) }

    /// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]
}
