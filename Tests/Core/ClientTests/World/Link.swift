import Client
import Determinism
import HTTPTypes
import NIOCore
import Wire

/// The network between one device and the server.
final class Link {
    enum Direction: Int, CaseIterable { case up, down }

    enum Mode: Equatable {
        /// Everything passes.
        case up
        /// Nothing passes and nothing is closed: bytes are kept and pass when the mode ends.
        case stalled
        /// Connections are reset and refused.
        case refusing
    }

    /// The largest piece that a link with a rate transmits at once, in bytes.
    private static let pieceBytes = 1460

    private unowned let time: VirtualTime
    /// The delay of each direction.
    var latency = Nanoseconds.milliseconds(20)
    /// Bytes per second of each direction; `nil` is unlimited.
    var rate: Int64?
    /// The number of further bytes after which the connection that carries them is reset; `nil` is unlimited.
    var bytesUntilReset: Int?
    /// Whether the kernel discards bytes that are stalled when a connection is closed. A request cannot arrive after
    /// its sender has given up then.
    var discardsStalledBytes = false
    private(set) var mode = Mode.up
    private var connections: [Connection] = []
    private var freeAt = [Instant.start, Instant.start]
    private var last = [0, 0]

    init(time: VirtualTime) { self.time = time }

    func set(_ mode: Mode) {
        self.mode = mode
        switch mode {
        case .refusing: for connection in connections { connection.reset(after: .zero) }
        case .up: for direction in Direction.allCases { transmit(direction) }
        case .stalled: break
        }
    }

    func add(_ connection: Connection) { connections.append(connection) }

    func remove(_ connection: Connection) { connections.removeAll { $0 === connection } }

    /// Transmits what the mode and the rate allow.
    func transmit(_ direction: Direction) {
        guard mode != .stalled else { return }
        guard let rate else {
            for connection in connections where connection.hasBytes(direction) {
                send(connection, direction, bytesMax: .max, at: time.now)
            }
            return
        }
        guard time.now >= freeAt[direction.rawValue] else { return }
        // Connections share the rate in turn.
        let waiting = connections.indices.filter { connections[$0].hasBytes(direction) }
        guard let next = waiting.first(where: { $0 > last[direction.rawValue] }) ?? waiting.first else { return }
        last[direction.rawValue] = next
        let connection = connections[next]
        let size = min(Self.pieceBytes, connection.byteCount(direction))
        let end = time.now + Nanoseconds(Int64(size) * 1_000_000_000 / rate)
        freeAt[direction.rawValue] = end
        send(connection, direction, bytesMax: Self.pieceBytes, at: end)
        time.schedule(at: end) { [weak self] in self?.transmit(direction) }
    }

    private func send(_ connection: Connection, _ direction: Direction, bytesMax: Int, at end: Instant) {
        var limit = bytesMax
        if let left = bytesUntilReset { limit = min(limit, left) }
        let size = connection.send(direction, bytesMax: limit, arrivingAt: end + latency)
        guard let left = bytesUntilReset else { return }
        bytesUntilReset = left - size
        if left == size {
            bytesUntilReset = nil
            connection.reset(after: (end - time.now) + latency)
        }
    }
}

/// A TCP connection between a device and the server.
final class Connection {
    /// The send buffer of the kernel, in bytes.
    private static let sendBufferBytes = 16 << 10

    private struct Stream {
        var bytes = ByteBuffer()
        /// Whether FIN follows the bytes.
        var hasEnded = false
        var isEndSent = false
        /// The arrival of the last piece: later pieces do not overtake it.
        var lastArrival = Instant.start
    }

    let id: HTTPConnectionID
    private unowned let world: World
    private unowned let device: Device
    private let generation: Int
    private var streams = [Stream(), Stream()]
    /// Writes that the kernel has not accepted.
    private var unaccepted: [Int] = []
    private(set) var isClientOpen = true
    private(set) var isServerOpen = true
    private var isReset = false
    private var parser = HTTPParser(.requests)
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []

    init(_ id: HTTPConnectionID, of device: Device, in world: World) {
        self.id = id
        self.device = device
        self.world = world
        generation = device.generation
    }

    private var link: Link { device.link }

    func hasBytes(_ direction: Link.Direction) -> Bool {
        let stream = streams[direction.rawValue]
        return !isReset && (stream.bytes.readableBytes > 0 || stream.hasEnded && !stream.isEndSent)
    }

    func byteCount(_ direction: Link.Direction) -> Int { streams[direction.rawValue].bytes.readableBytes }

    // MARK: The device's side

    /// The device writes.
    func write(_ bytes: ByteBuffer) {
        guard isClientOpen, !isReset else { return }
        var bytes = bytes
        unaccepted.append(bytes.readableBytes)
        streams[0].bytes.writeBuffer(&bytes)
        link.transmit(.up)
        accept()
    }

    private func accept() {
        // The writes that are not accepted are the last bytes of the stream.
        while let first = unaccepted.first,
            streams[0].bytes.readableBytes - (unaccepted.reduce(0, +) - first) <= Self.sendBufferBytes
        {
            unaccepted.removeFirst()
            world.time.schedule(at: world.time.now) { [weak self] in
                guard let self, self.isClientOpen else { return }
                self.device.input(of: self.generation) { machine, now in
                    machine.process(.written(first, self.id), at: now)
                }
            }
        }
    }

    /// The device closes the connection, or its process ends.
    func closeByClient() {
        guard isClientOpen else { return }
        isClientOpen = false
        if link.mode == .stalled && link.discardsStalledBytes { streams[0].bytes.clear() }
        streams[0].hasEnded = true
        link.transmit(.up)
        if isReset || !isServerOpen { link.remove(self) }
    }

    // MARK: The network

    /// Transmits bytes; returns their number.
    func send(_ direction: Link.Direction, bytesMax: Int, arrivingAt time: Instant) -> Int {
        let index = direction.rawValue
        let size = min(bytesMax, streams[index].bytes.readableBytes)
        let arrival = max(time, streams[index].lastArrival)
        streams[index].lastArrival = arrival
        if size > 0, let piece = streams[index].bytes.readSlice(length: size) {
            world.time.schedule(at: arrival) { [weak self] in self?.arrive(piece, direction) }
        }
        if streams[index].bytes.readableBytes == 0 { streams[index].bytes.clear() }
        if streams[index].hasEnded, !streams[index].isEndSent, streams[index].bytes.readableBytes == 0 {
            streams[index].isEndSent = true
            world.time.schedule(at: arrival) { [weak self] in self?.arriveEnd(direction, .fin) }
        }
        if direction == .up { accept() }
        return size
    }

    private func arrive(_ bytes: ByteBuffer, _ direction: Link.Direction) {
        switch direction {
        case .up: if isServerOpen { received(bytes) }
        case .down:
            guard isClientOpen else { return }
            device.input(of: generation) { machine, now in machine.process(.received(bytes, self.id), at: now) }
        }
    }

    private func arriveEnd(_ direction: Link.Direction, _ how: HTTPCloseReason) {
        switch direction {
        case .up:
            isServerOpen = false
            link.remove(self)
        case .down:
            guard isClientOpen else { return }
            isClientOpen = false
            device.connectionClosed(self)
            device.input(of: generation) { machine, now in machine.process(.closed(self.id, how), at: now) }
        }
    }

    /// Resets the connection at both ends.
    func reset(after delay: Nanoseconds) {
        guard !isReset else { return }
        isReset = true
        let arrival = max(world.time.now + delay, streams[0].lastArrival, streams[1].lastArrival)
        world.time.schedule(at: arrival) { [self] in
            arriveEnd(.up, .reset)
            arriveEnd(.down, .reset)
        }
    }

    // MARK: The server's side

    private func received(_ bytes: ByteBuffer) {
        parser.received(bytes)
        do {
            while let part = try parser.takePart() {
                switch part {
                case .requestHead(let head, _): self.head = head
                case .body(let bytes, _): body.append(contentsOf: bytes.readableBytesView)
                case .end:
                    guard let head = head.take() else { continue }
                    respond(to: head, body)
                    body = []
                default: break
                }
            }
        } catch {
            world.problems.append("\(device.name) sent bytes that are not HTTP: \(error)")
            reset(after: .zero)
        }
    }

    private func respond(to head: HTTPRequestHead, _ body: [UInt8]) {
        var request = head.request
        request.headerFields = request.headerFields.filter { $0.name.canonicalName != "host" }
        let server = world.server
        func execute() -> WireResponse { server.execute(request, body, from: device.name) }
        switch server.arrive(request, from: device.name) {
        case nil: send(execute())
        case .respond(let response): send(server.sign(response))
        case .replace(let replace): send(replace(execute()))
        case .raw(let bytes): finish(ByteBuffer(bytes: bytes))
        case .cutRequest: reset(after: link.latency)
        case .cutResponse(let count):
            bytes(of: execute(), count).map(deliver)
            cutAfterBytes()
        case .endResponse(let count): finish(bytes(of: execute(), count) ?? ByteBuffer())
        case .silence(let executes): if executes { _ = execute() }
        case .delay(let delay):
            let response = execute()
            world.time.schedule(at: world.time.now + delay) { [weak self] in self?.send(response) }
        }
    }

    private func bytes(of response: WireResponse, _ count: Int) -> ByteBuffer? {
        var all = response.serialised(date: world.server.date)
        let size = count < 0 ? max(0, all.readableBytes + count) : min(count, all.readableBytes)
        return all.readSlice(length: size)
    }

    private func send(_ response: WireResponse) { deliver(response.serialised(date: world.server.date)) }

    private func deliver(_ bytes: ByteBuffer) {
        guard isServerOpen, !isReset else { return }
        var bytes = bytes
        streams[1].bytes.writeBuffer(&bytes)
        link.transmit(.down)
    }

    private func finish(_ bytes: ByteBuffer) {
        streams[1].hasEnded = true
        deliver(bytes)
    }

    private func cutAfterBytes() {
        guard link.mode != .stalled, link.rate == nil else { return reset(after: link.latency) }
        reset(after: .zero)
    }
}
