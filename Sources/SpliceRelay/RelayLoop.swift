internal import Impairment
internal import LinkModel
internal import NIOCore

extension RelayLoop {
    /// How a port's connections go on when it is closed.
    enum Ending: Sendable {
        /// With somebody else, if something is held; otherwise each socket gets a FIN.
        case drained
        /// Each socket gets a FIN.
        case closed
    }

    /// What a port leaves.
    struct Left: Sendable {
        /// Connections that are to go on, the liveliest first.
        var connections: [HandedOver] = []
        /// What had been carried, if the port is no more.
        var traffic: RelayedTraffic?
    }
}

#if os(Linux)
    internal import CRelay
    internal import HeapModule

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// A proxy's connections at a relay.
    final class RelayPort {
        let order: RelayOrder
        let token: RelayToken
        /// Who lets the clients in.
        let home: Relay
        /// The listening socket, if that is this relay.
        let listener: CInt?
        /// What the next connection's number goes with.
        var seed: UInt64
        var traffic = RelayedTraffic()
        /// The connections' places in the relay's table.
        var connections: Set<Int> = []
        /// Nothing is read or accepted any more: the connections' places in the order in which they go, the liveliest last.
        var leaving: [Int]?
        /// Nobody is accepted until there is a place.
        var waitsForPlace = false
        /// Nobody is accepted for a while, after it has failed.
        var isPaused = false

        init(_ order: RelayOrder, token: RelayToken, home: Relay, listener: OwnedSocket?) {
            self.order = order
            self.token = token
            self.home = home
            self.listener = listener?.take()
            seed = order.seed
        }

        /// What a direction may hold.
        var bytesMax: Int { order.limits.bytesMax(connections: order.places.count) }

        /// Everything that it has carried, with what it holds now.
        func traffic(_ connections: [RelayedConnection?]) -> RelayedTraffic {
            var traffic = traffic
            for place in self.connections {
                guard let connection = connections[place] else { continue }
                traffic.bytesHeld += connection.lanes.up.held + connection.lanes.down.held
            }
            return traffic
        }
    }

    /// What a relay's thread does: one `epoll` for listening sockets and connections of all proxies.
    ///
    /// Lives and is used on its thread only.
    final class RelayLoop {
        private let relay: Relay
        private let epoll: CInt
        private let tools = RelayTools(pipes: PipePool(pools: Relay.all.count))
        private var ports: [RelayToken: RelayPort] = [:]
        private var connections: [RelayedConnection?] = []
        private var freePlaces: [Int] = []
        /// How many connections there have been.
        private var generation: UInt32 = 0
        /// What has more to do after the sockets have been asked again.
        private var turns: [RelayToken] = []
        /// Dials that began in this round.
        private var newDials: [RelayToken] = []
        private var alarms = Heap<Alarm>()
        /// Counts rounds.
        private var round: UInt64 = 0

        /// When a dial has taken too long, or a port accepts again.
        private struct Alarm: Comparable {
            let due: NIODeadline
            let token: RelayToken

            static func < (left: Alarm, right: Alarm) -> Bool { left.due < right.due }
        }

        private static let eventsPerRound = 256
        /// Clients of one port that are let in before others have their turn.
        private static let acceptsPerTurn = 16
        /// How long nobody is accepted after it failed for want of something.
        private static let pauseAfterFailure = TimeAmount.milliseconds(100)

        init(_ relay: Relay, epoll: CInt) {
            self.relay = relay
            self.epoll = epoll
        }

        /// The thread's life.
        func run() -> Never {
            crelay_name_thread("relay \(relay.index)")
            blockSignals()
            relay.listenToBell(epoll, as: RelayToken(.bell, relay: relay.index, index: 0, generation: 0).bits)
            var events = [epoll_event](repeating: epoll_event(), count: Self.eventsPerRound)
            while true {
                let count = epoll_wait(epoll, &events, CInt(events.count), turns.isEmpty ? millisecondsToAlarm : 0)
                round += 1
                let waiting = turns
                turns.removeAll(keepingCapacity: true)
                for index in 0..<max(0, Int(count)) {
                    take(events[index].events, RelayToken(bits: events[index].data.u64))
                }
                for token in waiting { takeTurn(token) }
                ringAlarms()
                takeNewDials()
            }
        }

        /// Whoever handles signals does so elsewhere, and a write to a socket that is gone is an error here. What tells of a defect
        /// of ours stays, so that it ends the process with a backtrace.
        private func blockSignals() {
            var signals = sigset_t()
            sigfillset(&signals)
            for fault in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS] { sigdelset(&signals, fault) }
            pthread_sigmask(SIG_BLOCK, &signals, nil)
        }

        // MARK: What is asked of it

        /// Has connections of a proxy from now on; with a listening socket it lets them in, too.
        func open(_ token: RelayToken, _ order: RelayOrder, home: Relay, listener: OwnedSocket?) {
            let port = RelayPort(order, token: token, home: home, listener: listener)
            ports[token] = port
            guard let listener = port.listener else { return }
            // What is accepted has it from its listening socket.
            Self.sendAtOnce(listener)
            if !watch(listener, EPOLLIN.rawValue, token) {
                order.onWaiting(IOError(errnoCode: errno, reason: "epoll_ctl"))
            }
        }

        /// Listens no more, and reads nothing of the port's connections any more: they wait for ``take(_:_:)``.
        func freeze(_ token: RelayToken) {
            guard let port = ports[token], port.leaving == nil else { return }
            stopListening(port)
            port.leaving = port.connections.sorted {
                (connections[$0]?.lastActive ?? 0) < (connections[$1]?.lastActive ?? 0)
            }
        }

        /// Lets some connections of a frozen port go; with the last of them goes the port.
        func take(_ token: RelayToken, _ count: Int) -> Left {
            guard let port = ports[token] else { return Left() }
            var left = Left()
            while left.connections.count < count, let place = port.leaving?.popLast() {
                // Not one that has ended, or has come to its place since.
                guard port.connections.contains(place), let connection = connections[place] else { continue }
                if let past = release(connection) { left.connections.append(past) }
            }
            if port.leaving?.isEmpty != false { left.traffic = forget(port) }
            return left
        }

        /// Listens no more, and lets up to `connectionsMax` of the port's connections go; with the last of them goes the port.
        func close(_ token: RelayToken, _ ending: Ending, connectionsMax: Int) -> Left {
            freeze(token)
            guard let port = ports[token] else { return Left() }
            var left = Left()
            var count = 0
            while count < connectionsMax, let place = port.leaving?.popLast() {
                guard port.connections.contains(place), let connection = connections[place] else { continue }
                count += 1
                if ending == .drained && connection.holdsSomething {
                    if let past = release(connection) { left.connections.append(past) }
                } else {
                    end(connection)
                }
            }
            if port.leaving?.isEmpty != false { left.traffic = forget(port) }
            return left
        }

        private func stopListening(_ port: RelayPort) {
            guard let listener = port.listener else { return }
            // The socket has another descriptor: closing this one would not take it out.
            epoll_ctl(epoll, EPOLL_CTL_DEL, listener, nil)
            SystemSocket.close(listener)
        }

        private func forget(_ port: RelayPort) -> RelayedTraffic {
            ports[port.token] = nil
            return port.traffic
        }

        /// Lets one connection go.
        func handOver(_ token: RelayToken) -> HandedOver? { connection(token).flatMap { release($0) } }

        /// Cuts one connection, with a RST to both sockets; `false` if it is no more.
        func reset(_ token: RelayToken) -> Bool {
            guard let connection = connection(token) else { return false }
            end(connection, resetting: [.client, .server])
            return true
        }

        /// The names of a port's connections.
        func tokens(_ token: RelayToken) -> [RelayToken] {
            (ports[token]?.connections ?? []).compactMap { connections[$0]?.token }
        }

        /// Draws from another seed what has not been drawn: the next connection that is let in here is number 0.
        func reseed(_ token: RelayToken, _ seed: UInt64) {
            guard let port = ports[token], port.listener != nil else { return }
            port.order.numbers.restart()
            port.seed = seed
        }

        /// What has been carried.
        func traffic(_ token: RelayToken) -> RelayedTraffic { ports[token]?.traffic(connections) ?? RelayedTraffic() }

        /// The connections there are.
        func statuses(_ token: RelayToken) -> [ConnectionStatus] {
            (ports[token]?.connections ?? []).compactMap { connections[$0]?.status }
        }

        /// There may be a place for a client that waits.
        func placeIsFree(_ token: RelayToken) {
            if let port = ports[token], port.waitsForPlace { accept(port) }
        }

        /// Where a connection that had to ask goes.
        func dial(_ token: RelayToken, _ addresses: Result<[SocketAddress], any Error>) {
            guard let connection = running(token), connection.isDialling else { return }
            switch addresses {
            case .success(let addresses): dial(connection, addresses[...])
            case .failure(let error): dialFailed(connection, error)
            }
            takeNewDials()
        }

        // MARK: What sockets say

        private func take(_ reported: UInt32, _ token: RelayToken) {
            var events = reported
            switch token.kind {
            case .bell:
                for job in relay.takeJobs() { job(self) }
            case .listener:
                if let port = ports[token] { accept(port) }
            case .client, .server:
                guard let connection = running(token) else { return }
                let direction: Direction = token.kind == .client ? .up : .down
                // All dials of a connection have one token: this may be of one that has been closed in this round.
                if token.kind == .server, connection.dialsClosedInRound == round {
                    events = SystemSocket.events(of: connection.ends.down.descriptor)
                }
                let isHungUp = events & (EPOLLRDHUP.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0
                if isHungUp { connection.ends[direction].hangsUp = true }
                if events & EPOLLPRI.rawValue != 0 { connection.ends[direction].isUrgent = true }
                if isHungUp || events & (EPOLLIN.rawValue | EPOLLPRI.rawValue) != 0 {
                    connection.ends[direction].mayRead = true
                }
                if events & (EPOLLOUT.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 {
                    connection.ends[direction].mayWrite = true
                }
                if events & EPOLLERR.rawValue != 0 { connection.ends[direction].hasFailed = true }
                connection.lastActive = round
                if connection.isDialling {
                    if token.kind == .client {
                        // The server never hears of it.
                        if connection.ends.up.hasFailed { end(connection, resetting: [.server]) }
                        return
                    }
                    guard upstreamHasAnswered(connection) else { return }
                }
                carry(connection, first: direction)
            }
        }

        private func takeTurn(_ token: RelayToken) {
            if token.kind == .listener {
                if let port = ports[token] { accept(port) }
            } else if let connection = running(token) {
                connection.isWaitingForTurn = false
                carry(connection, first: .up)
            }
        }

        /// Carries both directions as far as they go.
        private func carry(_ connection: RelayedConnection, first: Direction) {
            guard carry(connection, first), carry(connection, first.opposite) else { return }
            // A loss found in the second direction ends the first.
            if connection.hasLostSocket, !carry(connection, first) { return }
            if connection.isWaitingForTurn { return }
            // What cannot be read because its receiver takes nothing would hide that its sender is gone.
            let hasFailed = Direction.allCases.contains { connection.ends[$0].hasFailed }
            if hasFailed || connection.hasLostSocket { abortWhenDrained(connection) }
        }

        /// Carries a direction as far as it goes; `false` if the connection is no more.
        private func carry(_ connection: RelayedConnection, _ direction: Direction) -> Bool {
            switch connection.carry(direction, tools) {
            case .waits: return true
            case .hasMore:
                if !connection.isWaitingForTurn {
                    connection.isWaitingForTurn = true
                    turns.append(connection.token)
                }
                return true
            case .lost: return true
            case .over:
                end(connection)
                return false
            }
        }

        /// Aborts a connection of which one socket is gone, once the other has taken what had been received of it, or does not in
        /// ``RelayedConnection/abortDelayMax``: its peer gets a RST, behind everything.
        private func abortWhenDrained(_ connection: RelayedConnection) {
            let now = NIODeadline.now()
            let due = connection.abortDue ?? now + RelayedConnection.abortDelayMax
            let survivors = [Side.client, .server].filter {
                !connection.ends[$0.sends].isLost && !connection.ends[$0.sends].hasFailed
            }
            let isDrained = survivors.allSatisfy { side in
                let lane = connection.lanes[side.opposite.sends]
                return lane.isAtEnd && lane.held == 0 && !connection.hasUnacknowledged(side)
            }
            if isDrained || due <= now { return end(connection, resetting: survivors) }
            connection.abortDue = due
            if connection.isAbortPending { return }
            connection.isAbortPending = true
            alarms.insert(Alarm(due: min(due, now + Self.drainCheckInterval), token: connection.token))
        }

        /// How often a socket is asked whether its peer has acknowledged everything.
        private static let drainCheckInterval = TimeAmount.milliseconds(10)

        // MARK: Clients

        private func accept(_ port: RelayPort) {
            guard let listener = port.listener, port.leaving == nil, !port.isPaused else { return }
            port.waitsForPlace = false
            for _ in 0..<Self.acceptsPerTurn {
                let room = port.order.places.room
                if room != .free {
                    port.waitsForPlace = true
                    if room == .processIsFull { pause(port) }
                    return port.order.onWaiting(nil)
                }
                let client = crelay_accept(listener)
                if client >= 0 {
                    letIn(client, port)
                    continue
                }
                switch errno {
                case EAGAIN: return
                // One that has gone again is no reason to keep others waiting.
                case ECONNABORTED, EINTR, EPROTO: continue
                // EMFILE, ENFILE, ENOBUFS, ENOMEM, or worse.
                default:
                    port.order.onWaiting(IOError(errnoCode: errno, reason: "accept"))
                    return pause(port)
                }
            }
            turns.append(port.token)
        }

        /// Stops accepting for ``pauseAfterFailure``.
        private func pause(_ port: RelayPort) {
            port.isPaused = true
            alarms.insert(Alarm(due: .now() + Self.pauseAfterFailure, token: port.token))
        }

        private func letIn(_ descriptor: CInt, _ port: RelayPort) {
            let client = OwnedSocket(descriptor)
            let passed = LoopDetector.shared.passed(
                from: try? SystemSocket.remoteAddress(of: descriptor),
                to: try? SystemSocket.localAddress(of: descriptor))
            if passed.contains(port.order.proxy) {
                client.reset()
                return port.order.onLoop()
            }
            port.order.places.take()
            port.traffic.accepted += 1
            // Here, whoever carries it: the server meets connections in the order in which they have come.
            let arrival = Arrival(
                client: client, number: port.order.numbers.take(), seed: port.seed, startedAt: .now(), passed: passed,
                dial: port.order.addresses.map { Self.beginDial($0[...], passed: passed, port.order) })
            let carrier = relay.forOneMore(mayBeAnother: arrival.dial != nil)
            if carrier === relay { return begin(arrival, port) }
            let token = port.token
            carrier.perform { loop in
                // It is there: it was opened before the listening socket was here, and is closed after that is gone.
                if let port = loop.ports[token] { loop.begin(arrival, port) }
            }
        }

        private func begin(_ arrival: Arrival, _ port: RelayPort) {
            let place = freePlaces.popLast() ?? connections.count
            if place == connections.count { connections.append(nil) }
            generation &+= 1
            let token = RelayToken(.client, relay: relay.index, index: place, generation: generation)
            let connection = RelayedConnection(arrival, token: token, on: port)
            connections[place] = connection
            port.connections.insert(place)
            if let dial = arrival.dial {
                goOn(connection, dial)
            } else {
                port.order.lookUp(token)
            }
            guard connections[place] === connection else { return }
            if !watch(connection.ends.up.descriptor, Self.allEvents, token) { end(connection) }
        }

        private static let allEvents =
            EPOLLIN.rawValue | EPOLLPRI.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue

        // MARK: Dials

        /// Tries addresses one after the other, each a while after the one before or as soon as that has failed.
        private func dial(_ connection: RelayedConnection, _ addresses: ArraySlice<SocketAddress>) {
            goOn(connection, Self.beginDial(addresses, passed: connection.passed, connection.port.order))
        }

        /// Begins to connect to the first address that there is a way to, and leaves those after it.
        private static func beginDial(
            _ addresses: ArraySlice<SocketAddress>, passed: [LoopDetector.ProxyNumber], _ order: RelayOrder
        ) -> Result<Arrival.Dial, IOError> {
            var failure = IOError(errnoCode: EADDRNOTAVAIL, reason: "connect")
            var addresses = addresses
            while let address = addresses.popFirst() {
                let server = socket(
                    CInt(address.protocol.rawValue),
                    CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
                guard server >= 0 else {
                    failure = IOError(errnoCode: errno, reason: "socket")
                    continue
                }
                sendAtOnce(server)
                order.keepAlive.apply(to: server)
                let record = recordDial(server, to: address, passed: passed, by: order.proxy)
                let code = address.withSockAddr { connect(server, $0, socklen_t($1)) }
                if code == 0 || errno == EINPROGRESS {
                    return .success(
                        Arrival.Dial(server: OwnedSocket(server), addresses: addresses, record: record))
                }
                failure = IOError(errnoCode: errno, reason: "connect")
                SystemSocket.close(server)
            }
            return .failure(failure)
        }

        /// Records a dial that may lead to a proxy of this process, under a port of its own, before it begins.
        private static func recordDial(
            _ server: CInt, to address: SocketAddress, passed: [LoopDetector.ProxyNumber],
            by proxy: LoopDetector.ProxyNumber
        ) -> LoopDetector.Dial? {
            guard Proxy.isOnThisMachine(address), LoopDetector.shared.mustRecord(address.port),
                let any = address.wildcard,
                any.withSockAddr({ bind(server, $0, socklen_t($1)) }) == 0,
                let port = (try? SystemSocket.localAddress(of: server))?.port
            else { return nil }
            return LoopDetector.shared.recordDial(from: port, passed: passed, by: proxy)
        }

        /// Waits for the answer to a dial, if it has begun.
        private func goOn(_ connection: RelayedConnection, _ dial: Result<Arrival.Dial, IOError>) {
            switch dial {
            case .failure(let error):
                connection.addresses = []
                if connection.ends.down.descriptor < 0 { return dialFailed(connection, error) }
                // A dial to an earlier address may still be answered.
                connection.dialDue = nil
                newDials.append(connection.token)
            case .success(let dial):
                connection.addresses = dial.addresses
                if let record = dial.record { connection.dialRecords.append(record) }
                if connection.ends.down.descriptor >= 0 {
                    connection.earlierDials.append(connection.ends.down.descriptor)
                }
                connection.ends.down = RelayedConnection.End(descriptor: dial.server.take())
                connection.dialDue = nil
                if watch(connection.ends.down.descriptor, Self.allEvents, connection.token.of(.server)) {
                    newDials.append(connection.token)
                } else {
                    dialFailed(connection, IOError(errnoCode: errno, reason: "epoll_ctl"))
                }
            }
        }

        /// A dial has an end: whether it is a good one.
        private func upstreamHasAnswered(_ connection: RelayedConnection) -> Bool {
            if connection.earlierDials.isEmpty {
                guard connection.ends.down.mayWrite else { return false }
                var code: CInt = 0
                if connection.ends.down.hangsUp {
                    var length = socklen_t(MemoryLayout<CInt>.size)
                    getsockopt(connection.ends.down.descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
                }
                if code == 0 {
                    connection.isDialling = false
                    return true
                }
                connection.dialsClosedInRound = round
                connection.closeDials()
                dialNext(connection, IOError(errnoCode: code, reason: "connect"))
                return false
            }
            let count = connection.earlierDials.count
            connection.dialsClosedInRound = round
            switch connection.takeAnsweredDial() {
            case .connected:
                connection.isDialling = false
                return true
            case .pending:
                if connection.earlierDials.count < count, !connection.addresses.isEmpty {
                    dial(connection, connection.addresses)
                }
            case .failed(let code): dialNext(connection, IOError(errnoCode: code, reason: "connect"))
            }
            return false
        }

        /// No dial is under way: the next address.
        private func dialNext(_ connection: RelayedConnection, _ failure: IOError) {
            if connection.addresses.isEmpty || connection.dialDeadline <= .now() {
                dialFailed(connection, failure)
            } else {
                dial(connection, connection.addresses)
            }
        }

        private func dialFailed(_ connection: RelayedConnection, _ error: any Error) {
            connection.closeDials()
            connection.port.order.onDialFailed(error)
            end(connection, resetting: connection.port.order.unreachableUpstream == .reset ? [.client] : [])
        }

        /// Dials that have not been answered at once are given their time.
        private func takeNewDials() {
            if newDials.isEmpty { return }
            for token in newDials {
                guard let connection = running(token), connection.isDialling else { continue }
                let next = NIODeadline.now() + UpstreamDial.attemptDelay
                let due = connection.addresses.isEmpty ? connection.dialDeadline : min(connection.dialDeadline, next)
                connection.dialDue = due
                alarms.insert(Alarm(due: due, token: token))
            }
            newDials.removeAll(keepingCapacity: true)
        }

        private func ringAlarms() {
            while let alarm = alarms.min, alarm.due <= .now() {
                alarms.removeMin()
                if alarm.token.kind == .listener {
                    ports[alarm.token]?.isPaused = false
                    if let port = ports[alarm.token] { accept(port) }
                } else if let connection = running(alarm.token) {
                    if connection.isDialling, connection.dialDue == alarm.due {
                        if alarm.due < connection.dialDeadline, !connection.addresses.isEmpty {
                            dial(connection, connection.addresses)
                        } else {
                            dialFailed(connection, IOError(errnoCode: ETIMEDOUT, reason: "connect"))
                        }
                    } else if connection.isAbortPending {
                        connection.isAbortPending = false
                        carry(connection, first: .up)
                    }
                }
            }
        }

        private var millisecondsToAlarm: CInt {
            guard let due = alarms.min?.due else { return -1 }
            let left = (due - .now()).nanoseconds
            return left <= 0 ? 0 : CInt(clamping: (left + 999_999) / 1_000_000)
        }

        // MARK: Ends

        /// Closes both sockets, and forgets the connection.
        private func end(_ connection: RelayedConnection, resetting sides: [Side] = []) {
            for side in sides where connection.ends[side.sends].descriptor >= 0 {
                ResetOnClose.arm(connection.ends[side.sends].descriptor)
            }
            // Before the port can be somebody else's.
            connection.dialRecords = []
            for direction in Direction.allCases {
                if connection.ends[direction].descriptor >= 0 {
                    SystemSocket.close(connection.ends[direction].descriptor)
                }
                connection.drop(direction, tools.pipes)
            }
            for dial in connection.earlierDials { SystemSocket.close(dial) }
            connection.earlierDials = []
            forget(connection)
            let (port, token) = (connection.port, connection.port.token)
            let wasFull = port.order.places.release()
            if port.waitsForPlace {
                turns.append(token)
            } else if wasFull && port.home !== relay {
                port.home.perform { $0.placeIsFree(token) }
            }
        }

        /// Takes a connection out of the relay, to go on elsewhere; `nil` if it has lost a socket, and is aborted.
        private func release(_ connection: RelayedConnection) -> HandedOver? {
            if connection.abortDue != nil {
                end(connection, resetting: [.client, .server])
                return nil
            }
            let status = connection.status
            if connection.isDialling, !connection.earlierDials.isEmpty { _ = connection.takeAnsweredDial() }
            for direction in Direction.allCases where connection.ends[direction].descriptor >= 0 {
                epoll_ctl(epoll, EPOLL_CTL_DEL, connection.ends[direction].descriptor, nil)
            }
            for dial in connection.earlierDials { SystemSocket.close(dial) }
            connection.earlierDials = []
            let server = connection.ends.down.descriptor
            // It may have been answered, and nobody told: the server, which has let it in, must not meet another in its place.
            let isDialling = connection.isDialling && (try? SystemSocket.remoteAddress(of: server)) == nil
            if isDialling && server >= 0 { SystemSocket.close(server) }
            let pending = connection.takeHeld(tools.pipes)
            forget(connection)
            // Whoever goes on with it reads this again.
            connection.port.traffic.bytesRead.up -= pending.up.readableBytes
            connection.port.traffic.bytesRead.down -= pending.down.readableBytes
            return HandedOver(
                status: status, seed: connection.seed, startedAt: connection.startedAt,
                client: OwnedSocket(connection.ends.up.descriptor),
                server: isDialling ? nil : OwnedSocket(server), pending: pending,
                isFinished: PerDirection(
                    up: connection.lanes.up.isFinished, down: connection.lanes.down.isFinished),
                passed: connection.passed, dials: isDialling ? [] : connection.dialRecords)
        }

        private func forget(_ connection: RelayedConnection) {
            let place = connection.token.index
            connections[place] = nil
            freePlaces.append(place)
            connection.port.connections.remove(place)
            relay.hasLess()
        }

        // MARK: Names

        /// A connection that is not on its way elsewhere.
        private func running(_ token: RelayToken) -> RelayedConnection? {
            connection(token).flatMap { $0.port.leaving == nil ? $0 : nil }
        }

        private func connection(_ token: RelayToken) -> RelayedConnection? {
            guard token.index < connections.count, let connection = connections[token.index],
                connection.token.generation == token.generation
            else { return nil }
            return connection
        }

        // MARK: Sockets

        private func watch(_ descriptor: CInt, _ events: UInt32, _ token: RelayToken) -> Bool {
            var event = epoll_event()
            event.events = events | EPOLLET.rawValue
            event.data.u64 = token.bits
            return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0
        }

        private static func sendAtOnce(_ descriptor: CInt) {
            var yes: CInt = 1
            setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<CInt>.size))
        }

        /// Where a socket's other end is.
        static func peer(of descriptor: CInt) -> Endpoint? {
            (try? SystemSocket.remoteAddress(of: descriptor)).map(Endpoint.init(_:))
        }
    }
#else
    /// Nobody has one.
    final class RelayLoop {
        private let never: Never

        private init(_ never: Never) { self.never = never }

        func open(_ token: RelayToken, _ order: RelayOrder, home: Relay, listener: OwnedSocket?) { switch never {} }
        func freeze(_ token: RelayToken) { switch never {} }
        func take(_ token: RelayToken, _ count: Int) -> Left { switch never {} }
        func close(_ token: RelayToken, _ ending: Ending, connectionsMax: Int) -> Left { switch never {} }
        func handOver(_ token: RelayToken) -> HandedOver? { switch never {} }
        func reset(_ token: RelayToken) -> Bool { switch never {} }
        func tokens(_ token: RelayToken) -> [RelayToken] { switch never {} }
        func reseed(_ token: RelayToken, _ seed: UInt64) { switch never {} }
        func traffic(_ token: RelayToken) -> RelayedTraffic { switch never {} }
        func statuses(_ token: RelayToken) -> [ConnectionStatus] { switch never {} }
        func placeIsFree(_ token: RelayToken) { switch never {} }
        func dial(_ token: RelayToken, _ addresses: Result<[SocketAddress], any Error>) { switch never {} }
    }
#endif
