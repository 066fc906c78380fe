import Determinism
import Foundation
import LinkModel
import TCPModel
import TestSupport
import Testing

@testable import PacketCapture

@Suite(.timeLimit(.minutes(30))) struct CalibrationTests {
    /// Hidden settings: the figures, and the transfers of the captures on the model.
    @Test func figuresOfHiddenLinksAreInTheirIntervals() throws {
        let folder = try TemporaryFolder()
        var score = CalibrationScore()
        var differences: [Double] = []
        for seed in randomSeeds(4, soak: 30) {
            let setting = HiddenSetting(seed: seed, bytesMax: TestSettings.isSoak ? 20_000_000 : 1_500_000)
            let path = folder.path("\(seed).pcapng")
            try setting.capture(to: path)
            let packets = try CaptureReader.read(path).packets
            let calibration = try Calibration(packets)
            #expect(calibration.near == setting.near)
            score.add(setting, calibration)
            if TestSettings.isSoak || seed == 0 {
                let replay = TransferReplay(packets, calibration)
                differences += replay.comparisons.map { abs($0.difference) }
            }
        }
        let median = try #require(differences.sorted().dropFirst(differences.count / 2).first)
        print(
            "calibration: \(score.correct) of \(score.known) figures, \(score.unknown) unknown; "
                + "median difference of \(differences.count) transfers \(median * 100) %")
        #expect(score.share >= 0.9 && score.known > score.unknown, "\(score.lines.joined(separator: "\n"))")
        #expect(median <= 0.1)
    }

    private static let plain: Conditions = {
        let direction = DirectionConditions(rate: .kilobits(5000), delay: .milliseconds(20))
        return Conditions(up: direction, down: direction)
    }()

    /// The packets of short exchanges, which never fill a queue.
    private static func requests(_ count: Int) throws -> [CapturedPacket] {
        let folder = try TemporaryFolder()
        let path = folder.path("requests.pcapng")
        try HiddenSetting(plain, near: .client, jobs: (0..<count).map { (Int64($0) * 200_000_000, 150, 300) })
            .capture(to: path)
        return try CaptureReader.read(path).packets
    }

    @Test func anUnsaturatedLinkHasNoRate() throws {
        let calibration = try Calibration(Self.requests(60))
        for direction in Direction.allCases {
            let figures = calibration.directions[direction]
            #expect(figures.rate.estimate == nil && figures.rate.text.contains("was saturated"), "\(figures.rate)")
            #expect(figures.queuePackets.estimate == nil)
        }
        let roundTrip = try #require(calibration.roundTrip.estimate)
        #expect(roundTrip.low <= 40e6 + 1e6 && roundTrip.high >= 40e6)
        #expect(calibration.conditions.down.rate == nil)
    }

    @Test func aCaptureWithoutHandshakesNeedsItsEnd() throws {
        let packets = try Self.requests(5)
        let later = packets.filter { !$0.flags.contains(.syn) }
        #expect { try Calibration(later) } throws: { "\($0)".contains("--at") }
        #expect(try Calibration(later, at: .client).near == .client)
        #expect { try Calibration([]) } throws: { "\($0)".contains("no packet") }
    }

    @Test func anOutageIsFound() throws {
        let folder = try TemporaryFolder()
        for near in Side.allCases {
            let setting = HiddenSetting(
                Self.plain, near: near, jobs: [(0, 150, 300), (1_000_000_000, 150, 12_000_000)])
            let path = folder.path("\(near).pcapng")
            try setting.capture(to: path, outage: 5_000_000_000...14_000_000_000)
            let calibration = try Calibration(CaptureReader.read(path).packets)
            let outage = try #require(calibration.outages.first, "captured at the \(near)")
            #expect(calibration.outages.count == 1)
            #expect(outage.start.low <= 5.2e9 && outage.start.high >= 4.8e9, "\(outage)")
            #expect(outage.end.low <= 14e9 && outage.end.high >= 14e9, "\(outage)")
        }
    }

    /// A limit of the rate that drops packets in place of queueing them, as a policer: no rate, or the right one.
    @Test func aPolicedLinkHasNoWrongRate() throws {
        let folder = try TemporaryFolder()
        var conditions = Self.plain
        conditions.down.queue = .packets(1)
        for near in Side.allCases {
            let path = folder.path("\(near).pcapng")
            try HiddenSetting(conditions, near: near, jobs: [(0, 150, 300), (1_000_000_000, 150, 1_000_000)]).capture(
                to: path)
            let figures = try Calibration(CaptureReader.read(path).packets).directions.down
            #expect(figures.rate.estimate.map { abs($0.value / 5e6 - 1) < 0.1 } ?? true, "\(figures.rate)")
            #expect(figures.queuePackets.estimate.map { $0.low <= 2 } ?? true, "\(figures.queuePackets)")
        }
    }

    @Test func aFileThatEndsWithinAPacketIsReadUpToIt() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("whole.pcapng")
        try HiddenSetting(Self.plain, near: .client, jobs: [(0, 150, 30_000)]).capture(to: path)
        let whole = try CaptureReader.read(path)
        #expect(!whole.endsEarly && !whole.isTruncated)
        let bytes = try Data(contentsOf: URL(filePath: path))
        try bytes.dropLast(10).write(to: URL(filePath: path))
        let part = try CaptureReader.read(path)
        #expect(part.endsEarly && part.packets.count == whole.packets.count - 1)
        #expect(part.packets.map(\.sequenceNumber) == whole.packets.dropLast().map(\.sequenceNumber))
    }

    /// Bytes that are no capture, or a damaged one: an error with its place, or some packets, and never a trap.
    @Test func damagedCapturesAreErrorsOrHaveFewerPackets() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("whole.pcapng")
        try HiddenSetting(seed: 5, bytesMax: 60_000).capture(to: path)
        let whole = try Data(contentsOf: URL(filePath: path))
        let count = try CaptureReader.read(path).packets.count
        let damaged = folder.path("damaged.pcapng")
        var (errors, fewer) = (0, 0)
        for seed in randomSeeds(60, soak: 2000) {
            var random = RandomStream(seed: seed, "damage")
            var bytes = whole
            if seed % 3 == 0 { bytes = bytes.prefix(Int(random.integer(below: Int64(bytes.count)))) }
            for _ in 0..<random.integer(below: 40) where !bytes.isEmpty {
                bytes[bytes.startIndex + Int(random.integer(below: Int64(bytes.count)))] = UInt8(
                    random.integer(below: 256))
            }
            try bytes.write(to: URL(filePath: damaged))
            do {
                let contents = try CaptureReader.read(damaged)
                if contents.packets.count < count { fewer += 1 }
                if let calibration = try? Calibration(contents.packets) {
                    _ = TransferReplay(Array(contents.packets.prefix(300)), calibration)
                }
            } catch {
                #expect("\(error)".contains("byte "), "\(error)")
                errors += 1
            }
        }
        #expect(errors > 0 && fewer > 0)
        try Data("not a capture".utf8).write(to: URL(filePath: damaged))
        #expect { try CaptureReader.read(damaged) } throws: { "\($0)".contains("byte 0: neither pcap nor pcapng") }
        #expect { try CaptureReader.read(folder.path("missing")) } throws: { "\($0)".contains("no such file") }
    }

    /// Both formats and byte orders of the same packets.
    @Test func allFormatsHaveTheSamePackets() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("whole.pcapng")
        try HiddenSetting(seed: 6, bytesMax: 30_000).capture(to: path)
        let expected = try CaptureReader.read(path).packets
        let blocks = try Self.packetBlocks(Data(contentsOf: URL(filePath: path)))
        for isBigEndian in [false, true] {
            for (magic, ticks) in [(UInt32(0xA1B2_3C4D), UInt64(1)), (0xA1B2_C3D4, 1000)] {
                var file = Data()
                func append<Value: FixedWidthInteger>(_ value: Value) {
                    withUnsafeBytes(of: isBigEndian ? value.bigEndian : value.littleEndian) {
                        file.append(contentsOf: $0)
                    }
                }
                append(magic)
                append(UInt16(2))
                append(UInt16(4))
                append(UInt64(0))
                append(UInt32(262_144))
                append(UInt32(101))
                for block in blocks {
                    append(UInt32(block.time / 1_000_000_000))
                    append(UInt32(block.time % 1_000_000_000 / ticks))
                    append(UInt32(block.bytes.count))
                    append(UInt32(block.length))
                    file.append(contentsOf: block.bytes)
                }
                let copy = folder.path("copy.pcap")
                try file.write(to: URL(filePath: copy))
                let packets = try CaptureReader.read(copy).packets
                #expect(packets.count == expected.count)
                for (packet, original) in zip(packets, expected) {
                    #expect(abs(packet.time - original.time) <= Int64(ticks))
                    #expect(
                        packet.sequenceNumber == original.sequenceNumber && packet.payloadBytes == original.payloadBytes
                    )
                    #expect(
                        packet.timestamp?.value == original.timestamp?.value && packet.direction == original.direction)
                    #expect(packet.sackBlocks.map(\.start) == original.sackBlocks.map(\.start))
                }
            }
        }
    }

    private static func packetBlocks(_ file: Data) throws -> [(time: UInt64, bytes: [UInt8], length: Int)] {
        let bytes = [UInt8](file)
        var blocks: [(time: UInt64, bytes: [UInt8], length: Int)] = []
        var offset = 0
        func word(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
            (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32(8 * $1) }
        }
        while offset < bytes.count {
            let length = Int(word(bytes, offset + 4))
            if word(bytes, offset) == 6 {
                let captured = Int(word(bytes, offset + 20))
                blocks.append(
                    (
                        UInt64(word(bytes, offset + 12)) << 32 | UInt64(word(bytes, offset + 16)),
                        Array(bytes[offset + 28..<offset + 28 + captured]), Int(word(bytes, offset + 24))
                    ))
            }
            offset += length
        }
        return blocks
    }
}
