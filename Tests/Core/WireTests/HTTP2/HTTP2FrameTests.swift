import NIOCore
import TestSupport
import Testing
import Wire

/// The frames of HTTP/2, and their header blocks.
@Suite struct HTTP2FrameTests {
    private static let fields = [
        HTTP2Field(":method", "POST"), HTTP2Field(":path", "/notes"),
        HTTP2Field("x-long", String(repeating: "v", count: 300)),
        HTTP2Field("authorization", "secret", isNeverIndexed: true),
    ]

    /// A conversation with every type of frame, padding, a header block in several frames, and an unknown type.
    private static let frames: [ByteBuffer] = {
        let kinds: [ByteBuffer] = [
            HTTP2Frame.settings([(HTTP2Frame.Setting.initialWindowSize, 70_000), (99, 1)]),
            HTTP2Frame.bytes(.settings, flags: HTTP2Frame.Flag.ack, stream: 0, ByteBuffer()),
            HTTP2Frame.block(.headers, 1, fields, prefix: ByteBuffer(bytes: [0x80, 0, 0, 3, 9]), endsStream: false),
            HTTP2Frame.block(
                .headers, 3, [HTTP2Field("x-huge", String(repeating: "h", count: 40_000))], endsStream: true),
            HTTP2Frame.data(1, ByteBuffer(string: "body"), endsStream: false),
            // DATA with 3 bytes of padding.
            HTTP2Frame.bytes(.data, flags: 0x9, stream: 1, ByteBuffer(bytes: [3, 104, 105, 0, 0, 0])),
            HTTP2Frame.number(.windowUpdate, 0, 17),
            HTTP2Frame.number(.resetStream, 1, HTTP2ErrorCode.cancel.rawValue),
            HTTP2Frame.bytes(.priority, stream: 5, ByteBuffer(bytes: [0, 0, 0, 1, 7])),
            HTTP2Frame.block(.pushPromise, 1, fields, prefix: ByteBuffer(integer: UInt32(2)), endsStream: false),
            HTTP2Frame.bytes(.ping, stream: 0, ByteBuffer(bytes: [1, 2, 3, 4, 5, 6, 7, 8])),
            HTTP2Frame.goAway(last: 7, .enhanceYourCalm),
        ]
        // A type that no RFC defines.
        return kinds + [ByteBuffer(bytes: [0, 0, 2, 0xBE, 0xFF, 0, 0, 0, 9, 1, 2])]
    }()

    private static var bytes: [UInt8] { frames.flatMap { Array($0.readableBytesView) } }

    private static func read(_ bytes: [UInt8], pieces: (Int) -> Int) -> (frames: [HTTP2Frame], error: HTTP2Error?) {
        var reader = HTTP2FrameReader()
        var frames: [HTTP2Frame] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let size = min(rest.count, max(1, pieces(rest.count)))
            reader.received(ByteBuffer(bytes: rest.prefix(size)))
            rest = rest.dropFirst(size)
            do throws(HTTP2Error) {
                while let frame = try reader.takeFrame() { frames.append(frame) }
            } catch {
                return (frames, error)
            }
        }
        return (frames, nil)
    }

    @Test func anySplitOfTheBytesGivesTheSameFrames() {
        let whole = Self.read(Self.bytes) { $0 }
        #expect(whole.error == nil && whole.frames.count == Self.frames.count)
        #expect(whole.frames.map(\.bytes) == Self.frames)
        // The ranges have no gap.
        #expect(whole.frames.first?.range.lowerBound == 0)
        for (left, right) in zip(whole.frames, whole.frames.dropFirst()) {
            #expect(left.range.upperBound == right.range.lowerBound)
        }
        #expect(whole.frames.last?.range.upperBound == Int64(Self.bytes.count))
        #expect(Self.read(Self.bytes) { _ in 1 }.frames == whole.frames)
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<200 {
            let split = Self.read(Self.bytes) { _ in Int.random(in: 1...3000, using: &generator) }
            #expect(split.frames == whole.frames, "seed 11")
        }
    }

    @Test func contentsAreWithoutPaddingAndPriority() throws {
        let frames = Self.read(Self.bytes) { $0 }.frames
        #expect(frames[0].settings.map(\.id) == [4, 99] && frames[0].settings.map(\.value) == [70_000, 1])
        #expect(frames[1].isAcknowledgement)
        #expect(frames[2].prefix.readableBytes == 5 && !frames[2].endsStream)
        #expect(frames[3].endsStream && frames[3].bytes.readableBytes > 40_000 + 3 * HTTP2Frame.headerBytes - 1)
        #expect(frames[5].content == ByteBuffer(string: "hi") && frames[5].payloadBytes == 6 && frames[5].endsStream)
        #expect(frames[6].number == 17 && frames[7].number == 8 && frames[11].number == 7)
        #expect(frames[12].kind == nil && frames[12].stream == 9)
        #expect(frames[2].bytes(on: 77).getInteger(at: 5, as: UInt32.self) == 77)
        var decoder = HTTP2HeaderDecoder()
        #expect(try decoder.decode(frames[2]) == Self.fields)
        #expect(try decoder.decode(frames[3]).first?.value.utf8.count == 40_000)
    }

    @Test func aBlockWrittenAnewEmptiesTheTableOfItsReader() throws {
        func frame(_ block: [UInt8]) throws -> HTTP2Frame {
            var reader = HTTP2FrameReader()
            reader.received(HTTP2Frame.bytes(.headers, flags: 0x4, stream: 1, ByteBuffer(bytes: block)))
            return try #require(try reader.takeFrame())
        }
        var decoder = HTTP2HeaderDecoder()
        // A literal with incremental indexing, then the entry 62 of the dynamic table (RFC 7541, appendix C.2.1).
        let literal: [UInt8] = [0x40, 1, 97, 1, 98]
        #expect(try decoder.decode(frame(literal)) == [HTTP2Field("a", "b")])
        #expect(try decoder.decode(frame([0xBE])) == [HTTP2Field("a", "b")])
        let written = HTTP2Frame.block(.headers, 1, Self.fields, endsStream: false)
        #expect(
            try decoder.decode(frame(Array(written.readableBytesView.dropFirst(HTTP2Frame.headerBytes)))) == Self.fields
        )
        let error = try #require(throws: HTTP2Error.self) { _ = try decoder.decode(frame([0xBE])) }
        #expect(error.code == .compressionError)
    }

    @Test func floodsAndBombsEndWithAStatedError() throws {
        // CONTINUATION without end.
        let start = HTTP2Frame.bytes(.headers, stream: 1, ByteBuffer(bytes: [0x82]))
        let more = HTTP2Frame.bytes(.continuation, stream: 1, ByteBuffer())
        let flood = Array(start.readableBytesView) + (0..<1000).flatMap { _ in Array(more.readableBytesView) }
        #expect(Self.read(flood) { $0 }.error?.reason == "a header block has more than 64 CONTINUATION frames")
        let large = HTTP2Frame.bytes(.continuation, stream: 1, ByteBuffer(repeating: 0, count: 16_000))
        let growth = Array(start.readableBytesView) + (0..<20).flatMap { _ in Array(large.readableBytesView) }
        #expect(Self.read(growth) { $0 }.error?.reason == "a header block has more than 131072 bytes")
        // A frame of 16 MiB is rejected by its header alone.
        #expect(Self.read([0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 1]) { $0 }.error?.code == .frameSizeError)
        // One entry of 4000 bytes, to which one byte each refers.
        var block = ByteBuffer(bytes: [0x40, 1, 97, 127] + [0xA1, 0x1E])
        block.writeRepeatingByte(120, count: 4000)
        block.writeRepeatingByte(0xBE, count: 10_000)
        var reader = HTTP2FrameReader()
        reader.received(HTTP2Frame.bytes(.headers, flags: 0x4, stream: 1, block))
        let bomb = try #require(try reader.takeFrame())
        var decoder = HTTP2HeaderDecoder()
        let error = try #require(throws: HTTP2Error.self) { _ = try decoder.decode(bomb) }
        #expect(error.reason == "a header list has more than 131072 bytes")
    }

    @Test(
        arguments: [
            ([0, 0, 3, 0, 8, 0, 0, 0, 1, 9, 0, 0], "the padding is longer than the frame"),
            ([0, 0, 0, 0, 0, 0, 0, 0, 0], "a frame of a stream has no stream"),
            ([0, 0, 0, 4, 0, 0, 0, 0, 1], "a frame of the connection has a stream"),
            ([0, 0, 5, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5], "SETTINGS with 5 bytes"),
            ([0, 0, 3, 3, 0, 0, 0, 0, 1, 1, 2, 3], "a frame of type 3 needs 4 bytes"),
            ([0, 0, 0, 9, 4, 0, 0, 0, 1], "CONTINUATION without a header block"),
            (
                [0, 0, 0, 1, 0, 0, 0, 0, 1] + [0, 0, 0, 1, 4, 0, 0, 0, 3],
                "a header block is interrupted by another frame"
            ),
            ([0, 0, 2, 1, 0x24, 0, 0, 0, 1, 0, 0], "a frame is too short for its flags"),
        ] as [([UInt8], String)]) func malformedFramesAreErrors(bytes: [UInt8], reason: String)
    {
        let (frames, error) = Self.read(bytes) { $0 }
        #expect(frames.isEmpty && error?.reason == reason)
        // Nothing is lost: the bytes can pass unchanged.
        var reader = HTTP2FrameReader()
        reader.received(ByteBuffer(bytes: bytes))
        _ = try? reader.takeFrame()
        #expect(reader.takeRest() == ByteBuffer(bytes: bytes))
    }

    @Test func mutatedFramesAreReadOrRejected() {
        var generator = SeededGenerator(seed: 5)
        let small = Self.frames.filter { $0.readableBytes < 1000 }.map { Array($0.readableBytesView) }
        var (read, rejected) = (0, 0)
        let rounds = TestSettings.work(8_000, soak: 400_000)
        for _ in 0..<rounds {
            var bytes = small[Int.random(in: 0..<small.count, using: &generator)]
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            let (frames, error) = Self.read(bytes) { $0 }
            var decoder = HTTP2HeaderDecoder()
            for frame in frames {
                read += 1
                _ = (frame.settings, frame.number, frame.bytes(on: 3))
                if frame.kind == .headers || frame.kind == .pushPromise { _ = try? decoder.decode(frame) }
            }
            if error != nil { rejected += 1 }
        }
        #expect(read > rounds / 10 && rejected > rounds / 10, "seed 5: \(read) read, \(rejected) rejected")
    }
}
