import Determinism
import Foundation
import LinkModel
import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestSupport
import Testing
import Wire

@testable import Impairment

/// Comparison of the tracker with the decoders of NIOHTTP1 in random conversations, which are cut at random bytes and
/// interleaved in both directions.
@Suite(.timeLimit(.minutes(60))) struct ExchangeDifferentialTests {
    private typealias Exchange = ConversationPlan.Exchange

    private final class Requests: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        var found: [(method: String, body: Int, isWhole: Bool)] = []

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): found.append((head.method.rawValue, 0, false))
            case .body(let bytes): found[found.count - 1].body += bytes.readableBytes
            case .end: found[found.count - 1].isWhole = true
            }
        }
    }

    private final class Responses: ChannelInboundHandler {
        typealias InboundIn = HTTPClientResponsePart
        var found: [(status: Int, body: Int, isWhole: Bool)] = []

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head):
                if head.status.code >= 200 { found.append((Int(head.status.code), 0, false)) }
            case .body(let bytes): found[found.count - 1].body += bytes.readableBytes
            case .end: if !found.isEmpty { found[found.count - 1].isWhole = true }
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {}
    }

    /// Returns what NIO finds in the pieces of both streams.
    private static func decode(
        _ plan: ConversationPlan, up: [ByteBuffer], down: [ByteBuffer]
    ) throws -> [Exchange] {
        let (server, requests) = (EmbeddedChannel(), Requests())
        try server.pipeline.syncOperations.addHandlers([
            ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)), requests,
        ])
        for piece in up { server.pipeline.fireChannelRead(piece) }
        let (client, responses) = (EmbeddedChannel(), Responses())
        let decoder = HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes, informationalResponseStrategy: .forward)
        try client.pipeline.syncOperations.addHandlers([
            HTTPRequestEncoder(), ByteToMessageHandler(decoder), responses,
        ])
        for request in requests.found {
            let head = NIOHTTP1.HTTPRequestHead(version: .http1_1, method: .init(rawValue: request.method), uri: "/")
            try client.writeOutbound(HTTPClientRequestPart.head(head))
            try client.writeOutbound(HTTPClientRequestPart.end(nil))
        }
        for piece in down { client.pipeline.fireChannelRead(piece) }
        if plan.closes { client.pipeline.fireChannelInactive() }
        var found = requests.found.map { Exchange(method: $0.method, requestBody: $0.isWhole ? $0.body : nil) }
        for (index, response) in responses.found.enumerated() where index < found.count {
            found[index].status = response.status
            found[index].responseBody = response.isWhole ? response.body : nil
        }
        _ = try? server.finish()
        _ = try? client.finish()
        return found
    }

    /// Returns what the tracker has found, according to its events.
    private static func exchanges(_ events: [SharedLink.TimedExchangeEvent]) -> [Exchange] {
        var found: [Exchange] = []
        for event in events {
            switch event.event {
            case .requestStarted(let id, let head):
                #expect(id.number == found.count)
                found.append(Exchange(method: head.method))
            case .requestRead(let id, let bodyBytes): found[id.number].requestBody = Int(bodyBytes)
            case .responseStarted(let id, let head): found[id.number].status = head.status
            case .responseRead(let id, let status, let bodyBytes):
                #expect(found[id.number].status == status)
                found[id.number].responseBody = Int(bodyBytes)
            default: break
            }
        }
        return found
    }

    @Test func theTrackerFindsTheExchangesThatNIOFinds() throws {
        let way = DirectionConditions(rate: .kilobits(4000), delay: .milliseconds(20))
        var switches = 0
        for seed in randomSeeds(50, soak: 10_000) {
            var plan = ConversationPlan(seed: seed)
            let comment = Comment(rawValue: "seed \(seed)")
            var sockets = VirtualSockets(
                plan.number(0...1) == 0 ? .clear : Conditions(up: way, down: way), exchangeTracking: ExchangeTracking())
            let id = sockets.open()
            var sent = PerDirection(up: 0, down: 0)
            var pieces = PerDirection(up: [ByteBuffer](), down: [ByteBuffer]())
            let sizeMax = [1, 7, 100, 300, 1500, 6000][plan.number(0...5)]
            while sent.up < plan.up.count || sent.down < plan.down.count {
                let direction: Direction = plan.number(0...1) == 0 ? .up : .down
                let stream = direction == .up ? plan.up : plan.down
                let end = direction == .up ? stream.count : plan.downAvailable(after: sent.up)
                let count = min(plan.number(1...sizeMax), end - sent[direction])
                guard count > 0 else { continue }
                let piece = Array(stream[sent[direction]..<sent[direction] + count])
                sent[direction] += count
                sockets.send(piece, from: direction.sender, id)
                pieces[direction].append(ByteBuffer(bytes: piece))
                if plan.number(0...3) == 0 { sockets.wait(.milliseconds(Int64(plan.number(1...50)))) }
            }
            sockets.runToQuiet()
            if plan.closes {
                sockets.report(.inputClosed(.server), id)
                sockets.runToQuiet()
            }
            let found = Self.exchanges(sockets.allExchangeEvents)
            #expect(found == plan.exchanges, comment)
            #expect(sockets.socket(.server, id).received == plan.up, comment)
            #expect(sockets.socket(.client, id).received == plan.down, comment)
            #expect(!sockets.exchangeEvents.contains { $0.hasPrefix("not HTTP") }, comment)
            let delivered = sockets.exchangeEvents.filter { $0.contains("response delivered") }.count
            #expect(delivered == plan.exchanges.count { $0.responseBody != nil }, comment)
            if let opaqueFrom = plan.opaqueFrom {
                // The decoders of NIO leave the connection to others after a switch.
                switches += 1
                #expect(sockets.allExchangeEvents.contains { "\($0.event)".hasSuffix("protocol switched") }, comment)
                #expect(opaqueFrom.up < plan.up.count)
            } else if !plan.exchanges.contains(where: { $0.status == 403 }) {
                #expect(try Self.decode(plan, up: pieces.up, down: pieces.down) == found, comment)
            }
        }
        #expect(switches > 0)
    }
}
