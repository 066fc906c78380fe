import Foundation
import Impairment
import LinkModel
import TCPModel
import TestSupport
import Testing

@testable import PacketCapture

@Suite struct LinkCaptureTests {
    /// An enhanced packet block of a pcapng file.
    private struct Block {
        let time: UInt64
        let capturedBytes: Int
        let text: String
    }

    /// Captures a lossy exchange at one end. Returns the written packets, the number of packets that this end sends or
    /// receives, and the number of lost ones among those that it sends.
    private static func capture(at end: Side) throws -> (blocks: [Block], expected: Int, losses: Int) {
        let folder = try TemporaryFolder()
        let path = folder.path("link.pcapng")
        let capture = try LinkCapture(path, at: end, application: "test", interface: "link")
        var (expected, losses) = (0, 0)
        _ = conversation(request, response, lossy, seed: 3) { packet in
            let isOutbound = packet.record.direction == end.sendDirection
            expected += isOutbound || packet.record.fate == .arrives ? 1 : 0
            losses += isOutbound && packet.record.fate == .lost ? 1 : 0
            capture.append(
                packet.record, payload: packet.payload, cause: packet.cause, ports: ports, startUnixNanoseconds: 0)
        }
        let loss = capture.close()
        #expect(loss.packets == 0 && loss.reason == nil)
        return (blocks(try Data(contentsOf: URL(filePath: path))), expected, losses)
    }

    private static func blocks(_ file: Data) -> [Block] {
        let bytes = [UInt8](file)
        func word(_ offset: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) } }
        var blocks: [Block] = []
        var offset = 0
        while offset < bytes.count {
            let length = word(offset + 4)
            if word(offset) == 6 {
                let options = bytes[(offset + 28 + (word(offset + 20) + 3) / 4 * 4)..<(offset + length)]
                blocks.append(
                    Block(
                        time: UInt64(word(offset + 12)) << 32 | UInt64(word(offset + 16)),
                        capturedBytes: word(offset + 20), text: String(decoding: options, as: UTF8.self)))
            }
            offset += length
        }
        return blocks
    }

    @Test(arguments: Side.allCases) func packetsAreWrittenInTimeOrder(_ end: Side) throws {
        let (blocks, expected, _) = try Self.capture(at: end)
        #expect(blocks.count == expected && expected > 60)
        #expect(zip(blocks, blocks.dropFirst()).allSatisfy { $0.time <= $1.time })
    }

    @Test(arguments: Side.allCases) func lostPacketsAreShownAtTheirSendersEndWithoutPayload(_ end: Side) throws {
        let capture = try Self.capture(at: end)
        let losses = capture.blocks.filter { $0.text.contains("lost on the link") }
        #expect(losses.count == capture.losses && !losses.isEmpty)
        // Headers only.
        #expect(losses.allSatisfy { $0.capturedBytes <= 80 })
    }
}
