//  HTTPHost: what our HTTP servers have in common, on Hummingbird.
//
//  Owns: listening, starting and stopping; limits of size, time and number; bodies read whole and written piece by piece.
//
//  Does not own: what is answered.

public import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
public import NIOCore
internal import NIOHTTPTypes
internal import NIOPosix
internal import Synchronization

/// An HTTP server around a function from request to answer.
public final class HTTPHost: Sendable {
    /// The port it listens on.
    public let port: Int
    private let running: Task<Void, any Error>

    private init(port: Int, running: Task<Void, any Error>) {
        self.port = port
        self.running = running
    }

    /// How much those who connect may ask for.
    public struct Limits: Hashable, Sendable {
        /// Bytes of a request's body.
        public var bodyBytesMax = 1 << 20
        /// Bytes of all bodies that are being read or answered.
        public var bodiesBytesMax = 64 << 20
        /// Bytes of a request's headers.
        public var headerBytesMax = 32 << 10
        /// Open connections; further ones wait to be accepted.
        public var connectionsMax = 256
        /// How many seconds a body may take to arrive.
        public var bodySecondsMax = 15.0
        /// Who takes fewer bytes of a long answer a second, after so many seconds for nothing, is cut off.
        public var readersBytesPerSecondMin = 200
        /// How many seconds a reader may take nothing.
        public var readersPauseSecondsMax = 60.0

        /// The defaults.
        public init() {}
    }

    /// What is answered.
    public struct Answer: Sendable {
        /// Status and headers.
        public var head: HTTPResponse
        /// The body.
        public var body: Body

        /// Creates an answer.
        public init(_ head: HTTPResponse, _ body: Body) {
            self.head = head
            self.body = body
        }

        /// A body.
        public enum Body: Sendable {
            /// Whole; may be empty.
            case text(String)
            /// Piece by piece as fast as it is taken, `nil` at the end. An error closes the connection.
            case pieces(@Sendable () async throws -> String?)
            /// None, as for HEAD: only how long it would be, if that is known.
            case length(Int?)
            /// None, and no head: the connection is closed.
            case closed
        }
    }

    /// Why a body is not there.
    public enum BodyFailure: Error {
        /// Over ``Limits/bodyBytesMax``.
        case tooLarge
        /// It did not arrive within ``Limits/bodySecondsMax``.
        case tooSlow
        /// All together are over ``Limits/bodiesBytesMax``.
        case tooManyAtOnce
        /// It cannot be read.
        case broken(String)
    }

    /// Reads the body of a request whole.
    public typealias ReadBody = @Sendable () async throws(BodyFailure) -> [UInt8]

    /// Listens and answers until ``stop()``.
    ///
    /// - Parameters:
    ///   - fields: What every answer has that says nothing else of it, those to what is no HTTP among them.
    ///   - group: Where it runs; the process' own if none is given.
    ///   - respond: Gives the answer to a request; may read its body.
    /// - Throws: What the system says if the address cannot be had.
    public static func start(
        host: String, port: Int, limits: Limits, fields: HTTPFields = [:], on group: (any EventLoopGroup)? = nil,
        respond: @escaping @Sendable (HTTPRequest, ReadBody) async -> Answer
    ) async throws -> HTTPHost {
        let budget = Budget(limits.bodiesBytesMax)
        let responder = CallbackResponder { (request: Request, context: HostContext) in
            let reading = Reading(request, limits, budget)
            let answer = await respond(request.head) { () async throws(BodyFailure) in try await reading.read() }
            reading.finish()
            return try await response(answer, context, limits)
        }
        let (ports, found) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            responder: responder,
            server: .http1(
                configuration: HTTP1Channel.Configuration(
                    additionalChannelHandlers: [Warden(limits, fields)],
                    idleTimeout: .seconds(60),
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: limits.headerBytesMax, maxHeaderListSize: limits.headerBytesMax,
                        maxHeaderFieldCount: 100))),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), serverName: nil,
                availableConnectionsDelegate: MaximumAvailableConnections(limits.connectionsMax)),
            onServerRunning: { channel in
                found.yield(channel.localAddress?.port ?? port)
                found.finish()
            },
            eventLoopGroupProvider: .shared(group ?? MultiThreadedEventLoopGroup.singleton),
            // What it says of connections that are cut is nobody's business.
            logger: Logger(label: "slowlane.http") { _ in SwiftLogNoOpLogHandler() })
        let running = Task {
            defer { found.finish() }
            try await application.run()
        }
        for await port in ports { return HTTPHost(port: port, running: running) }
        try await running.value
        throw CancellationError()
    }

    /// Closes everything.
    public func stop() async {
        running.cancel()
        _ = try? await running.value
    }

    private static func response(_ answer: Answer, _ context: HostContext, _ limits: Limits) async throws -> Response {
        var head = answer.head
        let body: ResponseBody
        switch answer.body {
        case .text(""): body = ResponseBody()
        case .text(let text) where text.utf8.count <= shortBytesMax:
            body = ResponseBody(byteBuffer: ByteBuffer(string: text))
        case .text(let text):
            body = ResponseBody(contentLength: text.utf8.count) { writer in
                try await write(text, to: &writer, context.channel, limits)
                try await writer.finish(nil)
            }
        case .pieces(let next):
            body = ResponseBody { writer in
                while let piece = try await next() { try await write(piece, to: &writer, context.channel, limits) }
                try await writer.finish(nil)
            }
        case .length(let length?):
            head.headerFields[.contentLength] = String(length)
            body = ResponseBody()
        case .length(nil): body = ResponseBody { writer in try await writer.finish(nil) }
        case .closed:
            try? await context.channel.close()
            body = ResponseBody()
        }
        return Response(status: head.status, headers: head.headerFields, body: body)
    }

    /// Longer texts may meet a reader that stops in the middle.
    private static let shortBytesMax = 64 << 10

    /// Writes a piece, and closes the connection if its reader is too slow.
    private static func write(
        _ piece: String, to writer: inout any ResponseBodyWriter, _ channel: any Channel, _ limits: Limits
    ) async throws {
        let seconds =
            limits.readersPauseSecondsMax + Double(piece.utf8.count) / Double(max(1, limits.readersBytesPerSecondMin))
        let deadline = channel.eventLoop.scheduleTask(in: .milliseconds(Int64(seconds * 1000))) {
            channel.close(promise: nil)
        }
        defer { deadline.cancel() }
        try await writer.write(ByteBuffer(string: piece))
    }
}

/// Knows the connection a request has come by.
private struct HostContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}

/// What all bodies may take together.
private final class Budget: Sendable {
    private let left: Atomic<Int>

    init(_ bytes: Int) { left = Atomic(bytes) }

    func take(_ bytes: Int) -> Bool {
        if left.subtract(bytes, ordering: .relaxed).newValue >= 0 { return true }
        give(bytes)
        return false
    }

    func give(_ bytes: Int) { left.add(bytes, ordering: .relaxed) }
}

/// The body of one request.
private final class Reading: Sendable {
    private let request: Request
    private let limits: HTTPHost.Limits
    private let budget: Budget
    private let taken = Atomic(0)

    init(_ request: Request, _ limits: HTTPHost.Limits, _ budget: Budget) {
        self.request = request
        self.limits = limits
        self.budget = budget
    }

    /// Gives back what the body has taken.
    func finish() { budget.give(taken.exchange(0, ordering: .relaxed)) }

    func read() async throws(HTTPHost.BodyFailure) -> [UInt8] {
        let fields = request.headers
        if fields[.transferEncoding] == nil {
            guard let text = fields[.contentLength], text != "0" else { return [] }
            if let length = Int(text), length > limits.bodyBytesMax { throw .tooLarge }
        }
        do {
            // Who is too slow is told so; the `Warden` closes the connection of whoever goes on regardless.
            return try await withThrowingTaskGroup(of: [UInt8].self) { group in
                group.addTask { try await self.collect() }
                group.addTask {
                    try await Task.sleep(for: .seconds(self.limits.bodySecondsMax))
                    throw HTTPHost.BodyFailure.tooSlow
                }
                defer { group.cancelAll() }
                return try await group.next() ?? []
            }
        } catch let failure as HTTPHost.BodyFailure {
            throw failure
        } catch {
            throw .broken("\(error)")
        }
    }

    private func collect() async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await part in request.body {
            guard bytes.count + part.readableBytes <= limits.bodyBytesMax else { throw HTTPHost.BodyFailure.tooLarge }
            guard budget.take(part.readableBytes) else { throw HTTPHost.BodyFailure.tooManyAtOnce }
            taken.add(part.readableBytes, ordering: .relaxed)
            bytes += part.readableBytesView
        }
        return bytes
    }
}

/// What belongs to a connection and not to an answer: closes it when a request takes too long to arrive, whoever has answered
/// it meanwhile; says `100 Continue` to who waits for it (RFC 9110, 10.1.1); adds what every answer has.
private final class Warden: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let limits: HTTPHost.Limits
    private let fields: HTTPFields
    private var deadline: Scheduled<Void>?

    init(_ limits: HTTPHost.Limits, _ fields: HTTPFields) {
        self.limits = limits
        self.fields = fields
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            let channel = context.channel
            let limit = TimeAmount.milliseconds(Int64(limits.bodySecondsMax * 1000) + 5000)
            deadline = context.eventLoop.scheduleTask(in: limit) { channel.close(promise: nil) }
            let length = head.headerFields[.contentLength].flatMap { Int($0) } ?? 0
            if head.headerFields[.expect]?.lowercased() == "100-continue", length <= limits.bodyBytesMax {
                context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
            }
        case .body: break
        case .end:
            deadline?.cancel()
            deadline = nil
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = unwrapOutboundIn(data), !fields.isEmpty else {
            return context.write(data, promise: promise)
        }
        for field in fields where !head.headerFields.contains(field.name) { head.headerFields.append(field) }
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }
}
