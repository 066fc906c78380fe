#if os(Linux)
internal import HeapModule
internal import LinkModel
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Dials to the upstream's addresses: Happy Eyeballs (RFC 8305, section 5).
extension RelayLoop {
    /// Dials the first address. The next ones are dialled at intervals, or when a dial fails.
    func dial(_ connection: RelayedConnection, _ addresses: ArraySlice<SocketAddress>) {
        let dial = Self.startDial(
            addresses, proxiesPassed: connection.proxiesPassed, connection.port.configuration)
        dialStarted(connection, dial)
    }

    /// Starts to connect to the first address for which `connect` does not fail at once.
    static func startDial(
        _ addresses: ArraySlice<SocketAddress>, proxiesPassed: [Int], _ configuration: RelayPortConfiguration
    ) -> Result<AcceptedConnection.Dial, IOError> {
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
            setNoDelay(server)
            configuration.configureUpstreamSocket(server)
            let record = configuration.recordDial(server, address, proxiesPassed)
            let code = address.withSockAddr { connect(server, $0, socklen_t($1)) }
            if code == 0 || errno == EINPROGRESS {
                return .success(
                    AcceptedConnection.Dial(
                        server: OwnedSocket(server), remainingAddresses: addresses, record: record))
            }
            failure = IOError(errnoCode: errno, reason: "connect")
            SystemSocket.close(server)
        }
        return .failure(failure)
    }

    /// Adds a started dial to a connection.
    func dialStarted(_ connection: RelayedConnection, _ dial: Result<AcceptedConnection.Dial, IOError>) {
        switch dial {
        case .failure(let error):
            connection.remainingAddresses = []
            if connection.sockets.down.descriptor < 0 { return dialFailed(connection, error) }
            // A dial to an earlier address may still succeed.
            connection.dialTimer = nil
            dialsWithoutTimer.append(connection.token)
        case .success(let dial):
            connection.remainingAddresses = dial.remainingAddresses
            if let record = dial.record { connection.dialRecords.append(record) }
            if connection.sockets.down.descriptor >= 0 {
                connection.earlierDials.append(connection.sockets.down.descriptor)
            }
            connection.sockets.down = RelayedConnection.Socket(descriptor: dial.server.take())
            precondition(connection.sockets.down.descriptor >= 0, "a dial was given to two connections")
            connection.dialTimer = nil
            if register(
                connection.sockets.down.descriptor, Self.socketEvents, connection.token.with(.server))
            {
                dialsWithoutTimer.append(connection.token)
            } else {
                dialFailed(connection, IOError(errnoCode: errno, reason: "epoll_ctl"))
            }
        }
    }

    /// Handles an event of a dialled socket; returns whether a dial is established.
    func dialIsEstablished(_ connection: RelayedConnection) -> Bool {
        if connection.earlierDials.isEmpty {
            guard connection.sockets.down.isWritable else { return false }
            let code =
                connection.sockets.down.hasHangup
                ? RelayedConnection.DialState.takeError(of: connection.sockets.down.descriptor) : 0
            if code == 0 {
                connection.isDialling = false
                return true
            }
            connection.dialsClosedInRound = round
            connection.closeDials()
            dialNextAddress(connection, IOError(errnoCode: code, reason: "connect"))
            return false
        }
        let count = connection.earlierDials.count
        connection.dialsClosedInRound = round
        switch connection.selectEstablishedDial() {
        case .established:
            connection.isDialling = false
            return true
        case .pending:
            if connection.earlierDials.count < count, !connection.remainingAddresses.isEmpty {
                dial(connection, connection.remainingAddresses)
            }
        case .failed(let code): dialNextAddress(connection, IOError(errnoCode: code, reason: "connect"))
        }
        return false
    }

    /// Dials the next address when no dial is pending; fails if there is none or the connect timeout has expired.
    private func dialNextAddress(_ connection: RelayedConnection, _ failure: IOError) {
        if connection.remainingAddresses.isEmpty || connection.connectDeadline <= .now() {
            dialFailed(connection, failure)
        } else {
            dial(connection, connection.remainingAddresses)
        }
    }

    /// Closes a connection whose upstream cannot be reached.
    func dialFailed(_ connection: RelayedConnection, _ error: any Error) {
        let configuration = connection.port.configuration
        connection.closeDials()
        configuration.onDialFailed(error)
        if connection.tunnel != nil { return tunnelFailed(connection, error) }
        close(connection, resetting: configuration.resetsClientOnDialFailure ? [.client] : [])
    }

    /// Starts the timers of dials that were not established in the round in which they started.
    func startDialTimers() {
        if dialsWithoutTimer.isEmpty { return }
        for token in dialsWithoutTimer {
            guard let connection = activeConnection(token), connection.isDialling else { continue }
            let next = NIODeadline.now() + connection.port.configuration.attemptDelay
            let deadline =
                connection.remainingAddresses.isEmpty
                ? connection.connectDeadline : min(connection.connectDeadline, next)
            connection.dialTimer = deadline
            timers.insert(Timer(deadline: deadline, token: token))
        }
        dialsWithoutTimer.removeAll(keepingCapacity: true)
    }

    /// Dials the next address, or fails at the connection's deadline.
    func dialTimerFired(_ connection: RelayedConnection, at deadline: NIODeadline) {
        // The client has not completed its request in time.
        if connection.isNegotiating { return close(connection) }
        if deadline < connection.connectDeadline, !connection.remainingAddresses.isEmpty {
            dial(connection, connection.remainingAddresses)
        } else {
            dialFailed(connection, IOError(errnoCode: ETIMEDOUT, reason: "connect"))
        }
    }
}
#endif
