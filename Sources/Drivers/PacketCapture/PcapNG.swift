internal import Determinism

/// The blocks of a pcapng file (draft-ietf-opsawg-pcapng), which is their concatenation.
public enum PcapNG {
    /// LINKTYPE_RAW: packets start with their IPv4 or IPv6 header.
    public static let linkTypeRaw: UInt16 = 101

    /// Returns the section header and the description of the file's one interface, with times in nanoseconds.
    public static func header(application: String, interface: String, linkType: UInt16 = linkTypeRaw) -> [UInt8] {
        var section = Bytes()
        section.append(UInt32(0x1A2B_3C4D))
        section.append(UInt16(1))
        section.append(UInt16(0))
        // The section's length is unspecified.
        section.append(UInt64.max)
        section.option(4, Array(application.utf8))
        section.endOptions()

        var description = Bytes()
        description.append(linkType)
        description.append(UInt16(0))
        description.append(UInt32(0))
        description.option(2, Array(interface.utf8))
        description.option(9, [9])
        description.endOptions()
        return section.block(0x0A0D_0D0A) + description.block(1)
    }

    /// Returns a name resolution block, which gives IPv4 addresses their names.
    ///
    /// - Parameter names: Addresses of four bytes with their names.
    public static func names(_ names: [(address: [UInt8], name: String)]) -> [UInt8] {
        var block = Bytes()
        for (address, name) in names {
            // A name ends at its first zero.
            let record = address + name.utf8.filter { $0 != 0 }.prefix(255) + [0]
            block.option(1, record)
        }
        // The end of the records; there are no options.
        block.endOptions()
        return block.block(4)
    }

    /// Returns an enhanced packet block.
    ///
    /// - Parameters:
    ///   - time: Nanoseconds since 1970.
    ///   - captured: The captured bytes: all, or the first ones.
    ///   - length: The packet's length on the wire.
    ///   - comment: The comment that Wireshark shows.
    public static func packet(
        at time: Int64, captured: [UInt8], length: Int, isOutbound: Bool, comment: String?
    ) -> [UInt8] {
        var packet = Bytes()
        packet.append(UInt32(0))
        packet.append(UInt32(truncatingIfNeeded: time >> 32))
        packet.append(UInt32(truncatingIfNeeded: time))
        packet.append(UInt32(captured.count))
        packet.append(UInt32(length))
        packet.appendPadded(captured)
        if let comment { packet.option(1, Array(comment.utf8)) }
        var flags = Bytes()
        flags.append(UInt32(isOutbound ? 2 : 1))
        packet.option(2, flags.bytes)
        packet.endOptions()
        return packet.block(6)
    }

    /// A little-endian byte string, padded to four bytes.
    private struct Bytes {
        var bytes: [UInt8] = []

        mutating func append(_ value: some FixedWidthInteger) {
            withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
        }

        mutating func appendPadded(_ more: [UInt8]) {
            bytes += more
            bytes += [UInt8](repeating: 0, count: (4 - more.count % 4) % 4)
        }

        mutating func option(_ code: UInt16, _ value: [UInt8]) {
            // The length of an option has 16 bits.
            let value = value.prefix(Int(UInt16.max))
            append(code)
            append(UInt16(value.count))
            appendPadded(Array(value))
        }

        mutating func endOptions() { append(UInt32(0)) }

        func block(_ type: UInt32) -> [UInt8] {
            var block = Bytes()
            let length = UInt32(bytes.count + 12)
            block.append(type)
            block.append(length)
            block.bytes += bytes
            block.append(length)
            return block.bytes
        }
    }
}
