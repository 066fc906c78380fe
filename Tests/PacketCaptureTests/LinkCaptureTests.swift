import Foundation
import Impairment
import LinkModel
import TestSupport
import Testing

@testable import PacketCapture

struct LinkCaptureTests {
    /// An enhanced packet block of a pcapng file.
    private struct Block {
        let time: UInt64
        let capturedBytes: Int
        let text: String
    }

    /// Captures a lossy download at one end. Returns the written packets and the number of packets expected at that end.
    private static func capture(at end: Side) throws -> (blocks: [Block], expected: Int) {
        let folder = try TemporaryFolder()
        let path = folder.path("link.pcapng")
        let capture = try LinkCapture(path, at: end, application: "test", interface: "link")
        var expected = 0
        _ = conversation(request, response, lossy, seed: 3) { packet in
            let isOutbound = packet.record.direction == end.sends
            expected += isOutbound || packet.record.fate == .arrives ? 1 : 0
            capture.append(
                packet.record, payload: packet.payload, cause: packet.cause, ports: ports, startUnixNanoseconds: 0)
        }
        let loss = capture.close()
        #expect(loss.packets == 0 && loss.reason == nil)
        return (blocks(try Data(contentsOf: URL(filePath: path))), expected)
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
        let (blocks, expected) = try Self.capture(at: end)
        #expect(blocks.count == expected && expected > 60)
        #expect(zip(blocks, blocks.dropFirst()).allSatisfy { $0.time <= $1.time })
    }

    @Test func theServersEndShowsTheLossesOfADownloadWithoutTheirPayload() throws {
        let losses = try Self.capture(at: .server).blocks.filter { $0.text.contains("lost on the link") }
        #expect(!losses.isEmpty)
        #expect(losses.allSatisfy { $0.capturedBytes < 100 })
    }

    /// Of the lost packets, the client's end sees only its own: a few acknowledgments and parts of the request.
    @Test func theClientsEndDoesNotShowPacketsLostOnTheWayToIt() throws {
        let (client, server) = (try Self.capture(at: .client).blocks, try Self.capture(at: .server).blocks)
        func largeLosses(_ blocks: [Block]) -> Int {
            blocks.count { $0.text.contains("lost on the link") && $0.text.contains("retransmission") }
        }
        #expect(client.count < server.count)
        #expect(largeLosses(client) <= largeLosses(server))
    }
}
