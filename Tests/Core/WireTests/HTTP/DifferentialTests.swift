import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestSupport
import Testing

@testable import Wire

/// Comparison with NIOHTTP1, whose parser is independent: the same messages from the same bytes in any pieces.
@Suite(.timeLimit(.minutes(20))) struct DifferentialTests {
    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = Any
        var messages: [Message] = []

        /// Removes the spaces that NIO leaves after a value (RFC 9110, 5.5).
        private static func field(_ field: (name: String, value: String)) -> String {
            var value = field.value
            while value.last == " " || value.last == "\t" { value.removeLast() }
            return "\(field.name): \(value)"
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

        func take(_ head: HTTPRequestHeadNIO) {
            messages.append(
                Message(
                    first: "\(head.method) \(head.uri) \(head.version)",
                    headers: head.headers.map(Self.field)))
        }

        func take(_ head: HTTPResponseHeadNIO) {
            messages.append(
                Message(
                    first: "\(head.version) \(head.status.code)",
                    headers: head.headers.map(Self.field)))
        }

        func body(_ bytes: ByteBuffer) { messages[messages.count - 1].body += Array(bytes.readableBytesView) }

        func end(_ trailers: NIOHTTP1.HTTPHeaders?) {
            messages[messages.count - 1].trailers = trailers?.map(Self.field) ?? []
            messages[messages.count - 1].isWhole = true
        }
    }

    private final class RequestCollector: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        let collector = Collector()

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): collector.take(head)
            case .body(let bytes): collector.body(bytes)
            case .end(let trailers): collector.end(trailers)
            }
        }
    }

    private final class ResponseCollector: ChannelInboundHandler {
        typealias InboundIn = HTTPClientResponsePart
        let collector = Collector()

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): collector.take(head)
            case .body(let bytes): collector.body(bytes)
            case .end(let trailers): collector.end(trailers)
            }
        }
    }

    // 15 times 100 streams of requests, and as many of responses.
    @Test(arguments: randomSeeds(15)) func requestsAreParsedAsByNIO(seed: UInt64) throws {
        var writer = ConversationWriter(generator: SeededGenerator(seed: seed))
        for round in 0..<100 {
            var bytes: [UInt8] = []
            for _ in 0..<writer.number(1...3) {
                bytes += writer.request(["GET", "PUT", "POST", "DELETE", "HEAD"][writer.number(0...4)])
            }
            let channel = EmbeddedChannel()
            let theirs = RequestCollector()
            try channel.pipeline.syncOperations.addHandlers([
                ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)), theirs,
            ])
            var ours = HTTPParser(.requests)
            var found: [Message] = []
            for piece in writer.pieces(bytes) {
                channel.pipeline.fireChannelRead(piece)
                ours.received(piece)
            }
            found = try ours.messages()
            #expect(found == theirs.collector.messages, "seed \(seed), round \(round)")
            _ = try? channel.finish()
        }
    }

    @Test(arguments: randomSeeds(15)) func responsesAreParsedAsByNIO(seed: UInt64) throws {
        var writer = ConversationWriter(generator: SeededGenerator(seed: 1000 + seed))
        for round in 0..<100 {
            let methods = (0..<writer.number(1...3)).map { _ in ["GET", "PUT", "HEAD"][writer.number(0...2)] }
            let bytes = methods.flatMap { writer.response(to: $0) }
            let channel = EmbeddedChannel()
            let theirs = ResponseCollector()
            let decoder = HTTPResponseDecoder(
                leftOverBytesStrategy: .dropBytes, informationalResponseStrategy: .forward)
            try channel.pipeline.syncOperations.addHandlers([
                HTTPRequestEncoder(), ByteToMessageHandler(decoder), theirs,
            ])
            var ours = HTTPParser(.responses)
            for method in methods {
                ours.requestSent(method: method)
                let head = HTTPRequestHeadNIO(version: .http1_1, method: .init(rawValue: method), uri: "/")
                try channel.writeOutbound(HTTPClientRequestPart.head(head))
                try channel.writeOutbound(HTTPClientRequestPart.end(nil))
            }
            for piece in writer.pieces(bytes) {
                channel.pipeline.fireChannelRead(piece)
                ours.received(piece)
            }
            let found = try ours.messages()
            #expect(found == theirs.collector.messages, "seed \(seed), round \(round): \(methods)")
            _ = try? channel.finish()
        }
    }
}

private typealias HTTPRequestHeadNIO = NIOHTTP1.HTTPRequestHead
private typealias HTTPResponseHeadNIO = NIOHTTP1.HTTPResponseHead
