import Determinism
import Impairment
import LinkModel
import NIOCore
import TCPModel
import TestSupport
import Testing

@testable import PacketCapture

let ports = PerDirection<UInt16>(up: 40_000, down: 8000)

/// Returns the packets of one exchange over a modelled link, as frames.
///
/// - Parameter observe: Called for every packet, including those without a frame.
func conversation(
    _ request: String, _ response: String, _ conditions: Conditions, seed: UInt64,
    observe: (SharedLink.CapturedPacket) -> Void = { _ in }
) -> [(frame: [UInt8], time: Int64, record: PacketRecord)] {
    var link = SharedLink(conditions, seed: seed, observation: .packets)
    var frames: [(frame: [UInt8], time: Int64, record: PacketRecord)] = []
    var now = Instant.start
    let id = link.open(at: now)
    link.receive(.connected, on: id, at: now)
    link.receive(.bytes(ByteBuffer(string: request), from: .client), on: id, at: now)
    var arrived = 0
    var hasResponded = false
    var isOver = false
    while !isOver, let due = link.nextDeadline {
        now = max(now, due)
        link.advance(to: now)
        while let order = link.takeAction() {
            switch order.action {
            case .write(let bytes, to: .server):
                arrived += bytes.readableBytes
                if arrived == request.utf8.count && !hasResponded {
                    hasResponded = true
                    link.receive(.bytes(ByteBuffer(string: response), from: .server), on: id, at: now)
                    link.receive(.inputClosed(.server), on: id, at: now)
                }
            case .closeOutput(.client): link.receive(.inputClosed(.client), on: id, at: now)
            case .awaitDrain(let side): link.receive(.drained(side), on: id, at: now)
            case .ended: isOver = true
            default: break
            }
        }
        while let packet = link.takePacket() {
            observe(packet)
            // A retransmission whose bytes are no longer held has no payload; the first copy has it.
            if packet.record.payloadBytes > 0 && packet.payload == nil { continue }
            let bytes = IPv4PacketEncoder(ports: ports)
                .encode(packet.record, payload: packet.payload.map { Array($0.readableBytesView) })
            frames.append((bytes, packet.record.time.sinceStart.count, packet.record))
        }
    }
    return frames
}

let lossy = Conditions(
    up: DirectionConditions(
        rate: .kilobits(330), delay: .milliseconds(100), loss: Probability(partsPerMillion: 80_000)!),
    down: DirectionConditions(
        rate: .kilobits(780), delay: .milliseconds(100), loss: Probability(partsPerMillion: 80_000)!))

let request =
    "PUT /notes/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 6000\r\n\r\n" + String(repeating: "x", count: 6000)
let response = "HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + String(repeating: "y", count: 90_000)

@Suite struct ConnectionReaderTests {
    @Test(arguments: 0..<40 as Range<UInt64>) func anExchangeOverALossyLinkIsReadFromItsPackets(_ seed: UInt64) throws {
        let frames = conversation(request, response, lossy, seed: seed)
        var reader = ConnectionReader(port: 8000, readsHTTP: true)
        var events: [CaptureEvent] = []
        for (frame, time, record) in frames {
            #expect(frame.count == record.bytes)
            let segment = try #require(frame.withUnsafeBytes { TCPSegment($0, linkType: 101) })
            #expect(segment.payloadLength == record.payloadBytes)
            events += reader.process(segment, at: time)
        }
        let exchanges = events.compactMap { event in
            if case .exchange(let exchange) = event { exchange } else { nil }
        }
        let exchange = try #require(exchanges.first)
        #expect(exchanges.count == 1)
        #expect(exchange.method == "PUT" && exchange.target == "/notes/1" && exchange.status == 200)
        #expect(exchange.requestBytes == Int64(request.utf8.count))
        #expect(exchange.responseBytes == Int64(response.utf8.count))
        let first = try #require(exchange.firstByte)
        #expect(exchange.start < first && first < exchange.end)
        let isUnreadable = events.contains { if case .unreadable = $0 { true } else { false } }
        #expect(!isUnreadable)
    }

    @Test func checksumsAreRightAndRetransmissionsAreMarked() throws {
        let frames = conversation(request, response, lossy, seed: 3)
        for (frame, _, _) in frames {
            #expect(sum(frame[..<20]) == 0xFFFF)
            let segment = Array(frame[20...])
            let pseudo = Array(frame[12..<20]) + [0, 6, UInt8(segment.count >> 8), UInt8(segment.count & 255)]
            #expect(sum((pseudo + segment)[...]) == 0xFFFF)
        }
        let lost = frames.filter { $0.record.fate == .lost }
        #expect(!lost.isEmpty)
        // Each lost data packet is followed by a retransmission.
        for loss in lost where loss.record.kind == .data {
            let again = frames.first {
                $0.time > loss.time && $0.record.direction == loss.record.direction
                    && $0.record.range.overlaps(loss.record.range)
            }
            #expect(again?.record.isRetransmission == true)
        }
    }

    @Test func missingBytesMakeAConnectionUnreadable() throws {
        let frames = conversation(request, response, .clear, seed: 1)
        var reader = ConnectionReader(port: 8000, readsHTTP: true)
        var events: [CaptureEvent] = []
        var skipped = false
        for (frame, time, record) in frames {
            if record.direction == .down && record.payloadBytes > 0 && record.range.lowerBound > 5000 && !skipped {
                skipped = true
                continue
            }
            let segment = try #require(frame.withUnsafeBytes { TCPSegment($0, linkType: 101) })
            events += reader.process(segment, at: time)
        }
        #expect(skipped)
        let reasons = events.compactMap { if case .unreadable(_, _, let reason, _) = $0 { reason } else { nil } }
        #expect(reasons == ["bytes are missing in the capture"])
    }

    @Test func anOutOfOrderFINEndsTheStreamAtItsPosition() throws {
        let untilClose = "HTTP/1.0 200 OK\r\n\r\n" + String(repeating: "y", count: 20_000)
        var frames = conversation("GET /all HTTP/1.0\r\n\r\n", untilClose, .clear, seed: 1)
        let last = try #require(frames.lastIndex { $0.record.direction == .down && $0.record.payloadBytes > 0 })
        // The FIN, in its own segment or with the last bytes, arrives before the bytes that precede it.
        let final = try #require(frames.lastIndex { $0.record.direction == .down && $0.record.isFIN })
        let index = final == last ? try #require(frames[..<last].lastIndex { $0.record.payloadBytes > 0 }) : last
        let late = frames.remove(at: index)
        frames.insert(late, at: final)
        var reader = ConnectionReader(port: 8000, readsHTTP: true)
        var events: [CaptureEvent] = []
        // An ACK for bytes that are captured later would mark them as missing.
        for (frame, time, record) in frames where record.kind != .ack || record.direction == .up && time == 0 {
            let segment = try #require(frame.withUnsafeBytes { TCPSegment($0, linkType: 101) })
            events += reader.process(segment, at: time)
        }
        let exchange = events.compactMap { if case .exchange(let exchange) = $0 { exchange } else { nil } }.first
        #expect(exchange?.status == 200)
        #expect(exchange?.responseBytes == Int64(untilClose.utf8.count))
    }

    @Test func framesOfAllLinkTypesAreDecoded() {
        let packet = conversation("GET / HTTP/1.0\r\n\r\n", "HTTP/1.0 204 N\r\n\r\n", .clear, seed: 1)[0].frame
        let ethernet = [UInt8](repeating: 1, count: 12) + [8, 0] + packet
        let tagged = [UInt8](repeating: 1, count: 12) + [0x81, 0, 0, 7, 8, 0] + packet + [0, 0, 0]
        let cooked = [UInt8](repeating: 0, count: 14) + [8, 0] + packet
        let loopback: [UInt8] = [2, 0, 0, 0] + packet
        let tcp = Array(packet[20...])
        let version6: [UInt8] =
            [0x60, 0, 0, 0, 0, UInt8(tcp.count + 8), 0, 64] + [UInt8](repeating: 0, count: 15) + [1]
            + [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [1] + [6, 0, 0, 0, 0, 0, 0, 0] + tcp
        for (frame, linkType) in [(packet, 101), (ethernet, 1), (tagged, 1), (cooked, 113), (loopback, 0)] {
            let segment = frame.withUnsafeBytes { TCPSegment($0, linkType: linkType) }
            #expect(segment?.isSYN == true && segment?.payloadLength == 0, "link type \(linkType)")
            #expect(segment?.source.description == "10.0.0.2:40000")
        }
        let segment = version6.withUnsafeBytes { TCPSegment($0, linkType: 12) }
        #expect(segment?.source.description == "[::1]:40000")
        #expect(segment?.destination.description == "[fe80::1]:8000")
    }

    @Test func corruptedFramesDoNotCrash() {
        var generator = SeededGenerator(seed: 5)
        let good = conversation(request, response, .clear, seed: 1)
        var reader = ConnectionReader(port: 8000, readsHTTP: true)
        for round in 0..<30_000 {
            var frame = good[round % good.count].frame
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                frame[Int.random(in: frame.indices, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            frame = Array(frame.prefix(Int.random(in: 0...frame.count, using: &generator)))
            let linkType = [0, 1, 12, 101, 113, 276, 999].randomElement(using: &generator) ?? 1
            if let segment = frame.withUnsafeBytes({ TCPSegment($0, linkType: linkType) }) {
                _ = reader.process(segment, at: Int64(round))
            }
        }
    }

    private func sum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var sum: UInt32 = 0
        for (index, byte) in bytes.enumerated() { sum += index % 2 == 0 ? UInt32(byte) << 8 : UInt32(byte) }
        while sum > 0xFFFF { sum = (sum & 0xFFFF) + (sum >> 16) }
        return sum
    }
}
