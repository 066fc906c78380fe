import Determinism
import LinkModel
import NIOCore
import NIOHPACK
import TestSupport
import Testing
import Wire

@testable import Impairment

/// Mutated frames of both peers. A connection has 250 frames; a million frames are `SLOWLANE_SEEDS=50`, and
/// `SLOWLANE_FIRST_SEED` selects the first connection.
@Suite struct StreamFuzzTests {
    private static let framesPerConnection = 250

    private static let actions: [FaultAction] = [
        .reset, .resetStream(.refusedStream), .close, .stall, .delay(.milliseconds(5)), .throttle(bytesPerSecond: 900),
        .respond(FaultResponse(status: 503, body: Array("busy".utf8))), .goAway, .limitStreams(1), .ignorePings, .ping,
        .blockWindow(connection: false), .blockWindow(connection: true), .dropTrailers, .truncateHeaders,
        .report(hold: .milliseconds(2)),
    ]

    @Test(arguments: randomSeeds(30, soak: 1600)) func mutatedFramesKeepToTheLimits(_ seed: UInt64) throws {
        var fuzzer = FrameFuzzer(seed: seed)
        let action = Self.actions[Int(seed) % Self.actions.count]
        let probabilities = [0, 0.3, 1]
        var rule = FaultRule(
            times: 0...Int.max, probability: probabilities[Int(seed / 16) % 3], point: nil, action: action)
        if case .truncateHeaders = action { rule.point = seed % 2 == 0 ? .beforeRequest : .beforeResponse }
        let isSlow = seed % 5 == 0
        var stage = HTTP2Stage(
            [rule],
            conditions: isSlow
                ? Conditions(up: .init(delay: .milliseconds(20)), down: .init(rate: .kilobits(5_000))) : .clear,
            sendsSettings: seed % 7 != 0, seed: seed)
        for number in 0..<Self.framesPerConnection where !stage.sockets.ended.contains(stage.id) {
            let (side, bytes) = fuzzer.next()
            stage.send(bytes, from: side)
            if number % 16 == 0 { stage.sockets.wait(.milliseconds(Int64(number % 3))) }
            if let problem = stage.problem { Issue.record("seed \(seed), frame \(number): \(problem)") }
        }
        let hasFired = stage.sockets.box.link.faultRules.contains { $0.fired > 0 }
        // The end of a stream passes an incomplete frame on.
        stage.sockets.report(.inputClosed(.client), stage.id)
        stage.sockets.report(.inputClosed(.server), stage.id)
        stage.sockets.wait(.seconds(1000))
        for side in [Side.client, .server] {
            let socket = stage.sockets.socket(side, stage.id)
            if !hasFired {
                // Every byte has passed, whatever it was.
                #expect(socket.received == stage.sent[side.opposite.sendDirection], "seed \(seed), \(side)")
            } else if !socket.gotReset {
                // The frames are complete, and their header blocks can be read in order.
                #expect(stage.unreadable(side) == nil, "seed \(seed), \(side), \(rule)")
            }
        }
        #expect(stage.sockets.ended.contains(stage.id), "seed \(seed), \(rule)")
    }

    // MARK: Attacks

    private static let busy = FaultAction.respond(FaultResponse(status: 503, body: Array("busy".utf8)))

    /// A header block of 40 bytes that stands for 128 KiB of fields: an entry of the table, again and again.
    @Test func headerBlocksThatExpandAreLimited() throws {
        var stage = HTTP2Stage([FaultRule(path: "/other", action: .reset)])
        var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
        let long = ("x-long", String(repeating: "v", count: 3_900))
        let head = [(":method", "POST"), (":scheme", "http"), (":path", "/a")]
        for stream in stride(from: UInt32(1), to: 20_000, by: 2) {
            var block = ByteBuffer()
            // 30 times 4 KiB are within the limit of a list, 40 times are beyond it.
            try encoder.encode(
                headers: HPACKHeaders(head + Array(repeating: long, count: stream < 1_000 ? 30 : 40)), to: &block)
            stage.send(
                Array(HTTP2Frame.bytes(.headers, flags: 4, stream: stream, block).readableBytesView), from: .client)
            #expect(stage.problem == nil)
            if stage.tracker == nil { break }
        }
        // The heads of open requests are limited before their number is.
        #expect(
            stage.events.last?.contains("the heads of requests without an end have more than 8388608 bytes") == true)
        #expect(stage.sockets.socket(.server, stage.id).received == stage.sent.up)

        // A single list beyond the limit is an error of the first block.
        var other = HTTP2Stage([FaultRule(path: "/other", action: .reset)])
        other.headers(1, head + Array(repeating: long, count: 40), from: .client)
        #expect(other.events.last?.contains("a header list has more than 131072 bytes") == true)
    }

    @Test(arguments: [0, 1, 1_000]) func continuationFramesAreLimited(_ bytes: Int) {
        var stage = HTTP2Stage([FaultRule(path: "/other", action: .reset)])
        stage.send(
            Array(HTTP2Frame.bytes(.headers, stream: 1, ByteBuffer(bytes: [0x82])).readableBytesView), from: .client)
        var count = 0
        while stage.tracker != nil, count < 1_000_000 {
            let piece = ByteBuffer(repeating: 0x82, count: bytes)
            stage.send(Array(HTTP2Frame.bytes(.continuation, stream: 1, piece).readableBytesView), from: .client)
            count += 1
        }
        #expect(count == HTTP2FrameReader.continuationsMax + 1)
        #expect(stage.sockets.socket(.server, stage.id).received == stage.sent.up)
    }

    /// A client that opens and resets streams (CVE-2023-44487), with and without faults.
    @Test(arguments: [nil, FaultAction.stall, busy, .delay(.seconds(60)), .resetStream(.refusedStream)])
    func rapidResetsLeaveNothingBehind(_ action: FaultAction?) {
        var rule = FaultRule(
            path: action == nil ? "/other" : "/a", times: 0...Int.max, point: .beforeRequest, action: .reset)
        if let action { rule.action = action }
        var stage = HTTP2Stage([rule])
        let count = TestSettings.work(600, soak: StreamTracker.streamsMax)
        for stream in stride(from: UInt32(1), to: UInt32(2 * count), by: 2) {
            stage.request(stream, "/a", endsStream: true)
            stage.number(.resetStream, stream, HTTP2ErrorCode.cancel.rawValue, from: .client)
        }
        #expect(stage.problem == nil)
        // A delay also delays RST_STREAM.
        let isDelayed = action == .delay(.seconds(60))
        #expect(stage.tracker?.streams.count ?? 0 <= (isDelayed ? StreamTracker.streamsMax : StreamTracker.retiredMax))
        stage.sockets.wait(.seconds(61))
        #expect(stage.tracker?.bytesHeld == PerDirection(up: 0, down: 0))
        #expect(stage.tracker?.headBytes == 0)
        let requests = stage.arrived(.server).filter { $0.frame.kind == .headers }.count
        #expect(requests == (action == nil || isDelayed ? count : 0))
    }

    @Test func tenThousandStreamsAreHeldAtOnce() {
        let rule = FaultRule(path: "/a", times: 0...Int.max, point: .beforeRequest, action: .delay(.seconds(60)))
        var stage = HTTP2Stage([rule])
        for index in 0..<StreamTracker.streamsMax { stage.request(UInt32(2 * index + 1), "/a", endsStream: true) }
        #expect(stage.problem == nil)
        #expect(stage.tracker?.streams.count == StreamTracker.streamsMax)
        stage.sockets.wait(.seconds(61))
        let arrived = stage.arrived(.server).filter { $0.frame.kind == .headers }.map(\.frame.stream)
        #expect(arrived == (0..<UInt32(StreamTracker.streamsMax)).map { 2 * $0 + 1 })
    }

    /// Windows of up to 2^31 - 1, increments of 0, and more credit than a window can have.
    @Test func windowsBeyondTheirLimitsDoNotTrap() {
        var stage = HTTP2Stage([
            FaultRule(path: "/a", times: 0...Int.max, point: .beforeRequest, action: Self.busy)
        ])
        stage.send(
            Array(HTTP2Frame.settings([(HTTP2Frame.Setting.initialWindowSize, .max)]).readableBytesView), from: .client)
        for index in 0..<200 {
            let stream = UInt32(2 * index + 1)
            stage.request(stream, "/a", endsStream: index % 2 == 0)
            for increment in [0, 1, HTTP2Frame.streamMax, .max] {
                stage.number(.windowUpdate, 0, increment, from: index % 3 == 0 ? .server : .client)
                stage.number(.windowUpdate, stream, increment, from: .client)
            }
        }
        #expect(stage.problem == nil)
        #expect(stage.arrived(.client).filter { $0.text == "H503" }.count == 200)
    }

    /// A client that sends DATA on a stream that a fault discards, and does not read the credit.
    @Test func creditForAClientThatDoesNotReadIsLimited() {
        var stage = HTTP2Stage([FaultRule(path: "/a", point: .beforeRequest, action: .stall)])
        stage.request(1, "/a")
        stage.sockets.setRead(false, .client, stage.id)
        let frame = Array(HTTP2Frame.data(1, ByteBuffer(bytes: [7]), endsStream: false).readableBytesView)
        let frames = Array(repeatElement(frame, count: 100).joined())
        var count = 0
        while !stage.sockets.socket(.server, stage.id).gotReset, count < 1_000_000 {
            stage.send(frames, from: .client)
            count += 100
        }
        // Two frames of credit, 26 bytes, for each frame of the client.
        let limit = (StreamTracker.faultBytesMax + 2 * (256 << 10)) / 26
        #expect(count <= 2 * limit, "\(count)")
        #expect(stage.events.contains { $0.contains("a peer has not read 4194304 bytes of the frames of faults") })
    }

    /// Responses of faults to a client that does not read stay those of the rule, until there is room for them.
    @Test func responsesForAClientThatDoesNotReadAreNotCopied() {
        let body = [UInt8](repeating: 1, count: FaultResponse.bodyBytesMax)
        var stage = HTTP2Stage([
            FaultRule(
                path: "/a", times: 0...Int.max, point: .beforeRequest,
                action: .respond(FaultResponse(status: 500, body: body)))
        ])
        stage.send(
            Array(HTTP2Frame.settings([(HTTP2Frame.Setting.initialWindowSize, 1 << 30)]).readableBytesView),
            from: .client)
        stage.number(.windowUpdate, 0, 1 << 30, from: .client)
        stage.sockets.setRead(false, .client, stage.id)
        for index in 0..<100 { stage.request(UInt32(2 * index + 1), "/a", "GET", endsStream: true) }
        #expect(stage.problem == nil)
        let tracker = stage.tracker
        #expect((tracker?.entered.down ?? 0) - (tracker?.written.down ?? 0) < 1 << 20)
        stage.sockets.setRead(true, .client, stage.id)
        stage.sockets.wait(.seconds(1))
        let ends = stage.arrived(.client).filter { $0.frame.kind == .data && $0.frame.endsStream }.count
        #expect(ends == 100)
    }
}

extension HTTP2Stage {
    /// The state of the streams; `nil` once they are not tracked.
    fileprivate var tracker: StreamTracker? {
        sockets.box.link.conduits.contains(id) ? sockets.box.link.conduits[id].tracker?.streams.first : nil
    }

    /// What of the state of the streams contradicts itself or the limits.
    fileprivate var problem: String? {
        guard let tracker else { return nil }
        for direction in Direction.allCases {
            let held = tracker.streams.values.flatMap { $0[direction].held }
            if tracker.bytesHeld[direction] != held.reduce(0, { $0 + $1.bytesHeld }) { return "bytesHeld \(direction)" }
            let blocks = held.compactMap { item -> Int64? in
                if case .block(let frame, _, _) = item { frame.range.lowerBound } else { nil }
            }
            if tracker.heldBlocks[direction] != blocks.sorted() { return "heldBlocks \(direction)" }
            // A frame that is not complete, or a header block.
            if tracker.readers[direction].bytesKept
                > HTTP2FrameReader.payloadBytesLimit + HTTP2FrameReader.blockBytesMax + (64 << 10)
            {
                return "bytesKept \(direction)"
            }
        }
        let heads = tracker.streams.values.reduce(0) { $0 + ($1.head == nil ? 0 : $1.headBytes) }
        if tracker.headBytes != heads { return "headBytes" }
        if heads > StreamTracker.headBytesMax + HTTP2HeaderDecoder.listBytesMax { return "\(heads) bytes of heads" }
        if tracker.streams.count - tracker.retired.count > StreamTracker.streamsMax { return "open streams" }
        if tracker.retired.count > StreamTracker.retiredMax { return "retired streams" }
        if tracker.beforeServerSettings.count > StreamTracker.waitingFramesMax + 1 { return "waiting frames" }
        if tracker.ownSettings.count > StreamTracker.ownSettingsMax { return "SETTINGS of faults" }
        if tracker.timed != Set(tracker.timed).sorted() { return "timed" }
        return nil
    }

    /// The reason why the bytes that a peer has received are not frames with readable header blocks.
    fileprivate func unreadable(_ side: Side) -> String? {
        var reader = HTTP2FrameReader()
        reader.permitPayload(bytes: .max)
        var decoder = HTTP2HeaderDecoder()
        decoder.permitTable(bytes: .max)
        let bytes = sockets.socket(side, id).received
        reader.received(ByteBuffer(bytes: side == .server ? bytes.dropFirst(HTTP2Frame.preface.count) : bytes[...]))
        do throws(HTTP2Error) {
            while let frame = try reader.takeFrame() {
                if frame.kind == .headers || frame.kind == .pushPromise { _ = try decoder.decode(frame) }
            }
        } catch {
            return "\(error)"
        }
        return nil
    }
}

/// Frames of a conversation of HTTP/2, some of which are mutated.
struct FrameFuzzer {
    private var generator: SeededGenerator
    private var encoders = PerDirection(
        up: HPACKEncoder(allocator: ByteBufferAllocator()), down: HPACKEncoder(allocator: ByteBufferAllocator()))
    private var nextStream: UInt32 = 1
    /// The part of the frames that is mutated, in percent.
    private let mutated: Int
    private var last: [UInt8] = []

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        // A mutated header usually ends the tracking, so many connections have few of them.
        mutated = [0, 1, 3, 30][Int(seed % 4)]
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

    private mutating func isTrue(_ percent: Int) -> Bool { number(1...100) <= percent }

    /// Returns the next frame, and the peer that sends it.
    mutating func next() -> (side: Side, bytes: [UInt8]) {
        let side: Side = isTrue(60) ? .client : .server
        var bytes = frame(side)
        if isTrue(mutated) { mutate(&bytes) }
        last = bytes
        return (side, bytes)
    }

    private mutating func frame(_ side: Side) -> [UInt8] {
        // Open streams, ended ones, and identifiers that were never used.
        let open = UInt32(number(0...8)) * 2
        let stream = isTrue(95) ? max(1, nextStream > open ? nextStream - open : 1) : UInt32(number(0...60))
        switch number(0...19) {
        case 0...5:
            if side == .client, isTrue(80) {
                nextStream += 2
                return block(.headers, nextStream, request, side)
            }
            return block(.headers, stream, side == .client ? [("x-trailer", "1")] : response, side)
        case 6...11:
            let size = isTrue(90) ? number(0...300) : number(0...20_000)
            var content = ByteBuffer(repeating: 7, count: size)
            var flags: UInt8 = isTrue(30) ? 1 : 0
            if isTrue(15) {
                let padding = UInt8(number(0...255))
                content = ByteBuffer(
                    bytes: [padding] + Array(repeating: 7, count: size) + Array(repeating: 0, count: Int(padding)))
                flags |= HTTP2Frame.Flag.padded
            }
            return bytes(.data, flags, stream, content)
        case 12: return Array(HTTP2Frame.number(.resetStream, stream, UInt32(number(0...14))).readableBytesView)
        case 13, 14:
            let increments = [0, 1, 1000, 65_535, Int(HTTP2Frame.streamMax), Int(UInt32.max)]
            return Array(
                HTTP2Frame.number(.windowUpdate, isTrue(50) ? 0 : stream, UInt32(increments[number(0...5)]))
                    .readableBytesView)
        case 15:
            let values: [UInt32] = [0, 1, 100, 4_096, 65_535, 1 << 20, .max]
            var settings: [(id: UInt16, value: UInt32)] = []
            for _ in 0..<number(0...3) { settings.append((UInt16(number(1...8)), values[number(0...6)])) }
            return isTrue(50)
                ? Array(HTTP2Frame.settings(settings).readableBytesView) : HTTP2Stage.acknowledgement
        case 16:
            // Some acknowledge PING of a fault.
            let payload = ByteBuffer(bytes: Array("slow".utf8) + [0, 0, 0, UInt8(number(0...9))])
            return bytes(.ping, isTrue(50) ? 1 : 0, 0, payload)
        case 17: return bytes(.priority, 0, stream, ByteBuffer(bytes: [0, 0, 0, UInt8(number(0...9)), 9]))
        case 18 where side == .server:
            return isTrue(50)
                ? block(.pushPromise, stream, request, side)
                : Array(HTTP2Frame.goAway(last: UInt32(number(0...200)), .noError).readableBytesView)
        default:
            return [0, 0, 2, UInt8(number(0x0A...0xFF)), UInt8(number(0...255)), 0, 0, 0, UInt8(stream & 0xFF), 1, 2]
        }
    }

    private func bytes(_ kind: HTTP2Frame.Kind, _ flags: UInt8, _ stream: UInt32, _ content: ByteBuffer) -> [UInt8] {
        Array(HTTP2Frame.bytes(kind, flags: flags, stream: stream, content).readableBytesView)
    }

    private var request: [(String, String)] {
        mutating get {
            let methods = ["GET", "POST", "PUT", "CONNECT"]
            var fields = [
                (":method", methods[number(0...3)]), (":scheme", "http"), (":authority", "h"),
                (":path", "/a\(number(0...5))"),
            ]
            if isTrue(20) {
                fields.append(("content-length", isTrue(90) ? "\(number(0...300))" : "99999999999999999999"))
            }
            if isTrue(5) { fields.removeFirst() }
            if isTrue(10) { fields.append(("x-long", String(repeating: "l", count: number(0...9_000)))) }
            if isTrue(5) { fields.append((":protocol", "websocket")) }
            return fields
        }
    }

    private var response: [(String, String)] {
        mutating get {
            let statuses = ["200", "103", "204", "404", "99", "abc"]
            return isTrue(70) ? [(":status", statuses[number(0...5)]), ("x-server", "fuzz")] : [("grpc-status", "0")]
        }
    }

    /// A header block in one or more frames, with padding or a priority.
    private mutating func block(
        _ kind: HTTP2Frame.Kind, _ stream: UInt32, _ fields: [(String, String)], _ side: Side
    ) -> [UInt8] {
        var content = ByteBuffer()
        try? encoders[side.sendDirection].encode(headers: HPACKHeaders(fields), to: &content)
        var flags: UInt8 = isTrue(40) && kind == .headers ? HTTP2Frame.Flag.endStream : 0
        var payload = ByteBuffer()
        if kind == .pushPromise { payload.writeInteger(UInt32(2 * number(1...50))) }
        if kind == .headers, isTrue(10) {
            payload.writeBytes([0, 0, 0, 0, 9])
            flags |= HTTP2Frame.Flag.priority
        }
        let first = isTrue(15) ? number(0...content.readableBytes) : min(content.readableBytes, 16_000)
        payload.writeImmutableBuffer(content.readSlice(length: first) ?? ByteBuffer())
        if content.readableBytes == 0 { flags |= HTTP2Frame.Flag.endHeaders }
        var all = bytes(kind, flags, stream, payload)
        while content.readableBytes > 0 {
            let piece = content.readSlice(length: min(content.readableBytes, max(1, number(1...9_000)))) ?? ByteBuffer()
            all += bytes(.continuation, content.readableBytes == 0 ? HTTP2Frame.Flag.endHeaders : 0, stream, piece)
        }
        return all
    }

    private mutating func mutate(_ bytes: inout [UInt8]) {
        for _ in 0..<[1, 1, 2, 4][number(0...3)] where !bytes.isEmpty {
            let at = isTrue(60) ? number(0...min(8, bytes.count - 1)) : number(0...bytes.count - 1)
            switch number(0...7) {
            case 0: bytes[at] ^= 1 << UInt8(number(0...7))
            case 1: bytes[at] = UInt8(number(0...255))
            case 2: bytes.removeSubrange(at..<min(bytes.count, at + number(1...9)))
            case 3: bytes.insert(contentsOf: bytes.prefix(number(1...20)), at: at)
            case 4: bytes.removeSubrange(at...)
            case 5: bytes += last.prefix(number(0...200))
            case 6: bytes += bytes
            default: bytes.replaceSubrange(at..<min(bytes.count, at + 4), with: [0xFF, 0xFF, 0xFF, 0xFF])
            }
        }
    }
}
