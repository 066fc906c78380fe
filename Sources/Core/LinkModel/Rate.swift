public import Determinism

/// A link rate in bits per second (1 kbit/s = 1000 bit/s), counting whole IP packets.
public struct Rate: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Bits per second, within ``allowed``.
    public let bitsPerSecond: Int64

    /// The supported rates: 100 bit/s to 100 Gbit/s.
    public static let allowed: ClosedRange<Int64> = 100...100_000_000_000

    /// Creates a rate, or `nil` outside ``allowed``.
    public init?(bitsPerSecond: Int64) {
        guard Rate.allowed.contains(bitsPerSecond) else { return nil }
        self.bitsPerSecond = bitsPerSecond
    }

    /// Returns a rate in kbit/s.
    ///
    /// - Precondition: The rate is within ``allowed``.
    public static func kilobits(_ count: Int64) -> Rate {
        guard let rate = Rate(bitsPerSecond: count * 1000) else { preconditionFailure("rate out of range") }
        return rate
    }

    /// Returns the time to transmit `bytes`, rounded up to whole nanoseconds.
    public func serializationTime(ofBytes bytes: Int) -> Nanoseconds {
        // The product fits into 64 bits up to 1 GB; packets have a few kilobytes.
        if bytes <= 1_000_000_000 {
            let bitNanoseconds = Int64(bytes) * 8_000_000_000
            return Nanoseconds((bitNanoseconds + bitsPerSecond - 1) / bitsPerSecond)
        }
        let whole = Int64(bytes).scaledSaturating(by: 8_000_000_000, over: bitsPerSecond)
        return Nanoseconds(whole.addingSaturating(1))
    }

    public static func < (left: Rate, right: Rate) -> Bool { left.bitsPerSecond < right.bitsPerSecond }

    public var description: String {
        if bitsPerSecond >= 10_000_000 && bitsPerSecond % 1_000_000 == 0 {
            return "\(bitsPerSecond / 1_000_000) Mbit/s"
        }
        if bitsPerSecond < 1000 { return "\(bitsPerSecond) bit/s" }
        return "\(Decimals.text(bitsPerSecond, digits: 3)) kbit/s"
    }
}

/// Decimal formatting without floating point.
enum Decimals {
    /// Returns `count` / 10^`digits` without trailing zeros.
    static func text(_ count: Int64, digits: Int) -> String {
        var scale: Int64 = 1
        for _ in 0..<digits { scale *= 10 }
        var fraction = String(count % scale + scale).dropFirst()
        while fraction.last == "0" { fraction.removeLast() }
        return fraction.isEmpty ? "\(count / scale)" : "\(count / scale).\(fraction)"
    }
}
