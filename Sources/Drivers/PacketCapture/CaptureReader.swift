internal import Determinism
internal import Foundation
internal import LinkModel
public import TCPModel

/// A reader of capture files: pcap with times in microseconds or nanoseconds, and pcapng, in either byte order.
///
/// The file is read in parts, and of each packet only the headers are kept.
public struct CaptureReader {
    /// An error in a capture file, with its place.
    public struct ReadError: Error, Hashable, Sendable, CustomStringConvertible {
        let path: String
        /// The offset in bytes; `nil` if the file cannot be read.
        let offset: Int?
        let reason: String

        public var description: String {
            offset.map { "\(path): byte \($0): \(reason)" } ?? "cannot read \(path): \(reason)"
        }
    }

    /// The TCP packets of a capture.
    public struct Contents: Sendable {
        /// The packets in order of time.
        public var packets: [CapturedPacket] = []
        /// The packets that are no TCP segments, or whose headers were not captured.
        public var otherPackets = 0
        /// Whether the file has more than ``CaptureReader/packetsMax`` packets, which were not read.
        public var isTruncated = false
        /// Whether the file ends within a packet, as that of a capture which was interrupted.
        public var endsEarly = false
    }

    /// The maximum number of packets that are read.
    public static let packetsMax = 1_000_000
    /// The largest packet or block.
    static let blockBytesMax = 16 << 20
    /// The bytes that are read at once.
    private static let chunkBytes = 1 << 20
    /// The interfaces of a pcapng file.
    private static let interfacesMax = 1024

    /// An interface of the capture.
    private struct Interface {
        var linkType: Int
        /// The units of time per second: a power of ten or of two.
        var ticksPerSecond: UInt64
        /// The seconds that are added to times.
        var offset: Int64
    }

    private let path: String
    private let file: FileHandle
    private var buffer: [UInt8] = []
    /// The position in the buffer, and the offset of the buffer in the file.
    private var position = 0
    private var base = 0
    private var isBigEndian = false
    private var interfaces: [Interface] = []
    private var contents = Contents()
    private var connections: ConnectionNumbers
    private var firstTime: Int64?

    private init(path: String, port: UInt16?) throws(ReadError) {
        self.path = path
        connections = ConnectionNumbers(port: port)
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw ReadError(
                path: path, offset: nil,
                reason: FileManager.default.fileExists(atPath: path) ? "permission denied" : "no such file")
        }
        self.file = file
    }

    /// Reads the TCP packets of a file.
    ///
    /// - Parameter port: The port of the servers; `nil` for all connections.
    public static func read(_ path: String, port: UInt16? = nil) throws(ReadError) -> Contents {
        var reader = try CaptureReader(path: path, port: port)
        defer { try? reader.file.close() }
        let magic = try reader.word(bigEndian: true)
        switch magic {
        case 0x0A0D_0D0A: try reader.readPcapNG()
        case 0xA1B2_C3D4: try reader.readPcap(bigEndian: true, ticksPerSecond: 1_000_000)
        case 0xD4C3_B2A1: try reader.readPcap(bigEndian: false, ticksPerSecond: 1_000_000)
        case 0xA1B2_3C4D: try reader.readPcap(bigEndian: true, ticksPerSecond: 1_000_000_000)
        case 0x4D3C_B2A1: try reader.readPcap(bigEndian: false, ticksPerSecond: 1_000_000_000)
        default:
            throw ReadError(
                path: path, offset: 0, reason: "neither pcap nor pcapng; write it with 'slowlane capture -w' or tcpdump"
            )
        }
        // The interfaces of a pcapng file may be written one after the other.
        reader.contents.packets = reader.contents.packets.enumerated()
            .sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element)
        if let first = reader.contents.packets.first?.time, first != 0 {
            for index in reader.contents.packets.indices { reader.contents.packets[index].time -= first }
        }
        return reader.contents
    }

    // MARK: Bytes

    private func failure(_ reason: String, at offset: Int) -> ReadError {
        ReadError(path: path, offset: offset, reason: reason)
    }

    /// Returns the next bytes; `nil` at the end of the file, also if only some of them are left.
    private mutating func take(_ count: Int) throws(ReadError) -> ArraySlice<UInt8>? {
        while buffer.count - position < count {
            buffer.removeFirst(position)
            base += position
            position = 0
            let more: Data?
            do {
                more = try file.read(upToCount: max(Self.chunkBytes, count - buffer.count))
            } catch {
                throw ReadError(path: path, offset: nil, reason: "not a regular file")
            }
            guard let more, !more.isEmpty else {
                contents.endsEarly = contents.endsEarly || !buffer.isEmpty
                return nil
            }
            buffer += more
        }
        defer { position += count }
        return buffer[position..<position + count]
    }

    private var offset: Int { base + position }

    private mutating func word(bigEndian: Bool) throws(ReadError) -> UInt32 {
        guard let bytes = try take(4) else { throw failure("the file ends in its header", at: offset) }
        return Self.integer(bytes, bigEndian)
    }

    /// Returns an unsigned integer.
    private static func integer<Value: FixedWidthInteger>(_ bytes: ArraySlice<UInt8>, _ isBigEndian: Bool) -> Value {
        var value: Value = 0
        for byte in isBigEndian ? Array(bytes) : bytes.reversed() {
            value = value << 8 | Value(truncatingIfNeeded: byte)
        }
        return value
    }

    /// Returns the integer at an offset in bytes, which must be long enough.
    private func integer<Value: FixedWidthInteger>(_ bytes: ArraySlice<UInt8>, at offset: Int) -> Value {
        let start = bytes.startIndex + offset
        return Self.integer(bytes[start..<start + Value.bitWidth / 8], isBigEndian)
    }

    // MARK: pcap

    private mutating func readPcap(bigEndian: Bool, ticksPerSecond: UInt64) throws(ReadError) {
        isBigEndian = bigEndian
        guard let header = try take(20) else { throw failure("the file ends in its header", at: offset) }
        let linkType: UInt32 = integer(header, at: 16)
        // The upper bits are flags of the frame check sequence.
        let interface = Interface(linkType: Int(linkType & 0xFFFF), ticksPerSecond: ticksPerSecond, offset: 0)
        while !contents.isTruncated {
            let start = offset
            guard let record = try take(16) else { return }
            let (seconds, fraction): (UInt32, UInt32) = (integer(record, at: 0), integer(record, at: 4))
            let captured: UInt32 = integer(record, at: 8)
            guard captured <= Self.blockBytesMax else {
                throw failure(
                    "a packet of \(captured) bytes; at most \(Self.blockBytesMax >> 20) MiB are allowed", at: start)
            }
            guard let frame = try take(Int(captured)) else {
                contents.endsEarly = true
                return
            }
            let time = Int64(seconds) * 1_000_000_000 + Int64(fraction) * Int64(1_000_000_000 / ticksPerSecond)
            append(frame, at: time, interface)
        }
    }

    // MARK: pcapng

    private mutating func readPcapNG() throws(ReadError) {
        // The first block's type has been read.
        position -= 4
        while !contents.isTruncated {
            let start = offset
            guard let head = try take(8) else { return }
            let isSection = head.elementsEqual([0x0A, 0x0D, 0x0D, 0x0A] + head.suffix(4))
            if isSection {
                guard let magic = try take(4) else { return }
                let value: UInt32 = Self.integer(magic, true)
                guard value == 0x1A2B_3C4D || value == 0x4D3C_2B1A else {
                    throw failure("the byte order of the section is unknown", at: start + 8)
                }
                isBigEndian = value == 0x1A2B_3C4D
                position -= 4
                interfaces = []
            }
            let header = [UInt8](buffer[position - 8..<position])[...]
            let (type, length): (UInt32, UInt32) = (integer(header, at: 0), integer(header, at: 4))
            guard length >= 12, length % 4 == 0, length <= Self.blockBytesMax else {
                throw failure(
                    "a block of \(length) bytes; expected a multiple of 4 from 12 bytes to \(Self.blockBytesMax >> 20) MiB",
                    at: start)
            }
            guard let body = try take(Int(length) - 8) else {
                contents.endsEarly = true
                return
            }
            try readBlock(type, body.dropLast(4), at: start)
        }
    }

    private mutating func readBlock(_ type: UInt32, _ body: ArraySlice<UInt8>, at start: Int) throws(ReadError) {
        switch type {
        case 1:
            guard body.count >= 8 else { throw failure("an interface description of \(body.count) bytes", at: start) }
            guard interfaces.count < Self.interfacesMax else {
                throw failure("more than \(Self.interfacesMax) interfaces", at: start)
            }
            let linkType: UInt16 = integer(body, at: 0)
            interfaces.append(try interface(Int(linkType), options: body.dropFirst(8), at: start))
        case 6:
            guard body.count >= 20 else { throw failure("a packet block of \(body.count) bytes", at: start) }
            let (number, high, low): (UInt32, UInt32, UInt32) = (
                integer(body, at: 0), integer(body, at: 4), integer(body, at: 8)
            )
            let captured: UInt32 = integer(body, at: 12)
            guard Int(number) < interfaces.count else {
                throw failure("a packet of interface \(number), which is not described", at: start)
            }
            guard Int(captured) <= body.count - 20 else {
                throw failure("a packet of \(captured) bytes in a block of \(body.count)", at: start)
            }
            let interface = interfaces[Int(number)]
            let ticks = UInt64(high) << 32 | UInt64(low)
            let (seconds, rest) = ticks.quotientAndRemainder(dividingBy: interface.ticksPerSecond)
            let (product, overflows) = rest.multipliedReportingOverflow(by: 1_000_000_000)
            let fraction =
                overflows
                ? UInt64(Double(rest) / Double(interface.ticksPerSecond) * 1e9) : product / interface.ticksPerSecond
            let whole = Int64(clamping: seconds).addingSaturating(interface.offset).multipliedSaturating(
                by: 1_000_000_000)
            append(
                body.dropFirst(20).prefix(Int(captured)), at: whole.addingSaturating(Int64(clamping: fraction)),
                interface)
        default: break
        }
    }

    private func interface(
        _ linkType: Int, options: ArraySlice<UInt8>, at start: Int
    ) throws(ReadError) -> Interface {
        var interface = Interface(linkType: linkType, ticksPerSecond: 1_000_000, offset: 0)
        var rest = options
        while rest.count >= 4 {
            let (code, length): (UInt16, UInt16) = (integer(rest, at: 0), integer(rest, at: 2))
            let value = rest.dropFirst(4).prefix(Int(length))
            guard value.count == Int(length) else { throw failure("an option longer than its block", at: start) }
            if code == 0 { break }
            if code == 9, let resolution = value.first {
                let exponent = Int(resolution & 0x7F)
                guard resolution & 0x80 != 0 ? exponent < 64 : exponent < 20 else {
                    throw failure("a resolution of times that does not fit into 64 bits", at: start)
                }
                interface.ticksPerSecond =
                    resolution & 0x80 != 0 ? 1 << UInt64(exponent) : (0..<exponent).reduce(1) { power, _ in power * 10 }
            }
            if code == 14, length == 8 { interface.offset = integer(value, at: 0) }
            rest = rest.dropFirst(4 + (Int(length) + 3) / 4 * 4)
        }
        return interface
    }

    // MARK: Packets

    private mutating func append(_ frame: ArraySlice<UInt8>, at time: Int64, _ interface: Interface) {
        let packet = frame.withUnsafeBytes { TCPSegment($0, linkType: interface.linkType, keepsPayload: false) }
        guard let segment = packet, let (connection, direction) = connections.number(of: segment) else {
            contents.otherPackets += 1
            return
        }
        guard contents.packets.count < Self.packetsMax else {
            contents.isTruncated = true
            return
        }
        // Times are relative to a packet at the start; packets of other interfaces may be a little earlier.
        let first = firstTime ?? time
        firstTime = first
        let (difference, overflows) = time.subtractingReportingOverflow(first)
        let sinceFirst = overflows ? CapturedPacket.timeMax : difference
        contents.packets.append(
            CapturedPacket(
                time: min(max(sinceFirst, -CapturedPacket.timeMax), CapturedPacket.timeMax), connection: connection,
                direction: direction, flags: CapturedPacket.Flags(rawValue: segment.flags),
                sequenceNumber: segment.sequenceNumber, acknowledgmentNumber: segment.acknowledgmentNumber,
                payloadBytes: segment.payloadLength, packetBytes: segment.packetLength,
                timestamp: segment.options.timestamp, segmentSizeMax: segment.options.segmentSizeMax,
                sackBlocks: segment.options.sackBlocks))
    }
}

/// The numbers of the connections of a capture, and the directions of their packets.
private struct ConnectionNumbers {
    private struct Key: Hashable {
        let client: TCPSegment.Endpoint
        let server: TCPSegment.Endpoint
    }

    private struct Connection {
        let number: Int
        let firstNumber: UInt32?
    }

    private let port: UInt16?
    private var connections: [Key: Connection] = [:]
    private var count = 0

    /// The maximum number of connections; packets of further ones are not used.
    private static let countMax = 100_000

    init(port: UInt16?) { self.port = port }

    /// Returns the number of a segment's connection and its direction; `nil` if the connection is not to be used.
    mutating func number(of segment: TCPSegment) -> (Int, Direction)? {
        if let port, segment.source.port != port, segment.destination.port != port { return nil }
        let (forth, back) = (
            Key(client: segment.source, server: segment.destination),
            Key(client: segment.destination, server: segment.source)
        )
        if segment.isSYN && !segment.isACK {
            // A repeated SYN has the same number; another number is that of a new connection with the same ports.
            if let known = connections[forth], known.firstNumber == segment.sequenceNumber {
                return (known.number, .up)
            }
            return add(forth, firstNumber: segment.sequenceNumber).map { ($0, .up) }
        }
        if let known = connections[forth] { return (known.number, .up) }
        if let known = connections[back] { return (known.number, .down) }
        // Without its SYN: servers have the given port, send SYN-ACK, or have the lower port.
        let isFromServer =
            port.map { segment.source.port == $0 } ?? (segment.isSYN || segment.source.port < segment.destination.port)
        return add(isFromServer ? back : forth, firstNumber: nil).map { ($0, isFromServer ? .down : .up) }
    }

    private mutating func add(_ key: Key, firstNumber: UInt32?) -> Int? {
        guard count < Self.countMax else { return nil }
        connections[key] = Connection(number: count, firstNumber: firstNumber)
        count += 1
        return count - 1
    }
}
