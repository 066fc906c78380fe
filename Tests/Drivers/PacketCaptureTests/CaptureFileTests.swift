import Foundation
import TestSupport
import Testing

@testable import PacketCapture

@Suite struct CaptureFileTests {
    @Test func blocksAreCompleteAndPadded() throws {
        var file = PcapNG.header(application: "slowlane", interface: "a link")
        for size in 0..<9 {
            file += PcapNG.packet(
                at: 1_700_000_000_123_456_789, captured: [UInt8](repeating: 7, count: size), length: 100,
                isOutbound: true,
                comment: size % 2 == 0 ? nil : String(repeating: "c", count: size))
        }
        var offset = 0
        var types: [UInt32] = []
        while offset < file.count {
            let length = Int(word(file, offset + 4))
            #expect(length % 4 == 0 && offset + length <= file.count)
            #expect(word(file, offset + length - 4) == UInt32(length))
            types.append(word(file, offset))
            offset += length
        }
        #expect(types == [0x0A0D_0D0A, 1] + [UInt32](repeating: 6, count: 9))
    }

    @Test func everythingAppendedIsInTheFile() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("a.pcapng")
        let file = try CaptureFile(path, header: [1, 2])
        for number in 0..<10_000 { file.append([UInt8(number & 255)]) }
        file.close()
        let content = try Data(contentsOf: URL(filePath: path))
        let appended = (0..<10_000).map { UInt8($0 & 255) }
        #expect(content.prefix(2) == Data([1, 2]) && content.dropFirst(2) == Data(appended))
        #expect(file.loss.packets == 0)
    }

    #if os(Linux)
    @Test func aFullDiskIsReportedWithTheNumberOfMissingPackets() throws {
        let file = try CaptureFile("/dev/full", header: [1, 2])
        file.append([3])
        file.close()
        file.append([4])
        #expect(file.loss.packets >= 2)
        #expect(file.loss.reason?.contains("space") == true)
    }
    #endif

    @Test func aFileThatCannotBeCreatedIsNamedInTheError() {
        #expect {
            _ = try CaptureFile("/nowhere/a.pcapng", header: [])
        } throws: {
            "\($0)" == "cannot create /nowhere/a.pcapng: no such file or directory"
        }
    }

    private func word(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
        (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32(8 * $1) }
    }
}
