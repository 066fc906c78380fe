internal import Determinism
internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import NIOPosix
internal import TCPModel

/// The driver of a ``ForwardProxy/DNSLookup``: carries its queries over a link, to name servers or to the system's
/// resolver, and the responses back.
///
/// A query leaves the link after its loss, queue and delay, and goes to the real server then. The response enters the link
/// when it has arrived, and at the earliest after the DNS delay of the conditions. Each query has a socket of its own, to
/// which the kernel gives a random port and passes datagrams of the server only. Used on its link's event loop only.
final class RunningLookup {
    private var machine: DNSLookup
    private let driver: LinkDriver
    private let answer: NameAnswer?
    private let resolver: NameResolver
    private let timeMax: TimeAmount
    private var finished: ((DNSLookup.Outcome) -> Void)?
    /// The sockets by the numbers of queries; `nil` while one is being opened.
    private var sockets: [Int: (any Channel)?] = [:]
    private var timer: Scheduled<Void>?
    private var isRunningActions = false

    /// The time to live of addresses that do not come from a name server, in seconds.
    private static let timeToLive: UInt8 = 60
    /// The length of an ICMP message about a datagram, which has the datagram's headers.
    private static let unreachableBytes = 2 * PacketSize.datagramHeader

    /// - Parameter answer: The answer to all queries, in place of one of servers.
    init(
        _ host: String, _ configuration: ResolverConfiguration, answer: NameAnswer?, on driver: LinkDriver,
        within timeMax: TimeAmount, _ resolver: NameResolver
    ) {
        self.driver = driver
        self.answer = answer
        self.resolver = resolver
        self.timeMax = timeMax
        let seed = UInt64.random(in: .min ... .max)
        machine = DNSLookup(
            host, configuration, at: driver.now, deadline: driver.now + Nanoseconds(timeMax.nanoseconds),
            ids: RandomStream(seed: seed, "dns"))
    }

    /// Starts the look-up; calls `finished` once, possibly at once, unless it is cancelled.
    func start(_ finished: @escaping (DNSLookup.Outcome) -> Void) {
        self.finished = finished
        runActions()
    }

    /// Ends the look-up without an outcome.
    func cancel() {
        finished = nil
        timer?.cancel()
        for number in Array(sockets.keys) { close(number) }
    }

    private func runActions() {
        if isRunningActions { return }
        isRunningActions = true
        while finished != nil, let action = machine.takeAction() {
            switch action {
            case .send(let query): send(query)
            case .close(let number): close(number)
            case .finish(let outcome):
                let finished = finished
                cancel()
                finished?(outcome)
            }
        }
        isRunningActions = false
        timer?.cancel()
        guard finished != nil, let deadline = machine.nextDeadline else { return }
        let time = driver.origin + .nanoseconds(deadline.sinceStart.count)
        timer = driver.eventLoop.assumeIsolated().scheduleTask(deadline: time) {
            self.machine.advance(to: max(self.driver.now, deadline))
            self.runActions()
        }
    }

    // MARK: Queries

    private func send(_ query: DNSLookup.Query) {
        let bytes = query.message.count + PacketSize.datagramHeader
        guard let arrival = driver.offerDatagram(bytes: bytes, .up) else { return }
        at(arrival) { self.ask(query) }
    }

    private func ask(_ query: DNSLookup.Query) {
        let sentAt = driver.now
        if let answer { return respond(with: answer, to: query, sentAt) }
        switch query.source {
        case .server(let server): ask(server, query, sentAt)
        case .system:
            let host = DNSQuery(query.message)?.name ?? ""
            resolver.addresses(of: Endpoint(host: host, port: 0), within: timeMax, on: driver.eventLoop)
                .assumeIsolated()
                .whenComplete { self.respond(with: Self.answer($0), to: query, sentAt) }
        }
    }

    private func ask(_ server: ResolverConfiguration.Server, _ query: DNSLookup.Query, _ sentAt: Instant) {
        guard let remote = try? SocketAddress(ipAddress: server.address.description, port: server.port) else {
            return respond(nil, to: query, sentAt)
        }
        sockets[query.number] = .some(nil)
        let handler = DatagramHandler { [weak self] in self?.respond($0, to: query, sentAt) }
        let bound = NIOLoopBound(handler, eventLoop: driver.eventLoop)
        DatagramBootstrap(group: driver.eventLoop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(bound.value)
                }
            }
            .connect(to: remote).assumeIsolated()
            .whenComplete { result in
                switch result {
                case .failure: self.respond(nil, to: query, sentAt)
                case .success(let channel):
                    guard self.sockets[query.number] != nil else { return channel.close(promise: nil) }
                    self.sockets[query.number] = channel
                    let datagram = AddressedEnvelope(remoteAddress: remote, data: ByteBuffer(bytes: query.message))
                    channel.writeAndFlush(datagram, promise: nil)
                }
            }
    }

    private func close(_ number: Int) { sockets.removeValue(forKey: number)??.close(promise: nil) }

    // MARK: Responses

    private func respond(with answer: NameAnswer, to query: DNSLookup.Query, _ sentAt: Instant) {
        guard let message = DNSQuery(query.message)?.response(answer, timeToLive: Self.timeToLive) else { return }
        respond(message, to: query, sentAt)
    }

    /// Carries a response over the link; `nil` for a server that cannot be reached.
    private func respond(_ message: [UInt8]?, to query: DNSLookup.Query, _ sentAt: Instant) {
        at(max(driver.now, sentAt + driver.link.conditions.dnsDelay)) {
            let bytes = message.map { $0.count + PacketSize.datagramHeader } ?? Self.unreachableBytes
            guard let arrival = self.driver.offerDatagram(bytes: bytes, .down) else { return }
            self.at(arrival) {
                let now = self.driver.now
                if let message {
                    self.machine.receive(message, from: query.source, query: query.number, at: now)
                } else {
                    self.machine.recordFailure(of: query.number, at: now)
                }
                self.runActions()
            }
        }
    }

    /// The system's resolver names few causes: a name without an address, and a server that does not answer.
    private static func answer(_ result: Result<[SocketAddress], any Error>) -> NameAnswer {
        switch result {
        case .success(let addresses):
            return .addresses(addresses.compactMap { $0.ipAddress.flatMap { IPAddress($0)?.bytes } })
        case .failure(let error):
            return switch (error as? ProxyError)?.lookupFailure {
            case .noAddress: .noSuchName
            case .timeout: .nothing
            case .other, nil: .failure
            }
        }
    }

    /// Calls `work` at a time of the link, unless the look-up has ended before.
    private func at(_ time: Instant, _ work: @escaping () -> Void) {
        guard finished != nil else { return }
        if time <= driver.now { return work() }
        let deadline = driver.origin + .nanoseconds(time.sinceStart.count)
        driver.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
            if self.finished != nil { work() }
        }
    }
}

/// Passes the datagrams of a connected socket on; `nil` for an error, such as an ICMP message that nothing listens.
private final class DatagramHandler: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>

    private let receive: ([UInt8]?) -> Void

    init(_ receive: @escaping ([UInt8]?) -> Void) { self.receive = receive }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        receive(Array(unwrapInboundIn(data).data.readableBytesView))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { receive(nil) }
}

extension LinkDriver {
    /// Offers a datagram to the link. Returns the time of its arrival, `nil` if it is lost.
    fileprivate func offerDatagram(bytes: Int, _ direction: Direction) -> Instant? {
        var arrival: Instant?
        change { arrival = $0.offerDatagram(bytes: bytes, direction, at: $1) }
        return arrival
    }
}
