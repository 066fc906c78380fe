internal import Scenario

/// Requests past the client's queue.
extension SimulatedDevice {
    /// Sends a request on a connection of its own and calls `finish` when the response or the end of the connection has
    /// arrived. A kill of the client closes the connection.
    func send(_ request: Scenario.RawRequest, finish: @escaping () -> Void) throws(ActionError) {
        let content = try RawRequest.content(of: request, world.recorder, from: name)
        let connection = Connection(self, process: process, nil, ledger.addConnection())
        do {
            connection.raw = try RawExchange(content, authorization: Server.authorization(of: user))
        } catch {
            throw ActionError("\(error)")
        }
        rawExchanges.append((connection, finish))
        world.schedule(.rawDeadline(connection, .connecting), after: Self.rawTimeout)
        connect(connection)
    }

    /// Processes an event of the socket of a request past the client's queue.
    func receiveRaw(_ event: ClientSocketEvent, on connection: Connection) {
        switch event {
        case .connected:
            connection.client = .open
            if let bytes = connection.raw?.bytes { connection.write(bytes) }
            world.schedule(.rawDeadline(connection, .open), after: Self.rawTimeout)
        case .received(let bytes): if connection.raw?.received(bytes) ?? true { endRaw(connection) }
        case .connectFailed, .closed: endRaw(connection)
        case .written, .drained, .reset: break
        }
        settle()
    }

    /// Processes the time limit of a request in a state of its socket.
    func rawDeadlinePassed(_ connection: Connection, _ state: ClientState) {
        guard connection.client == state else { return }
        endRaw(connection)
        settle()
    }

    private func endRaw(_ connection: Connection) {
        connection.closeByClient()
        guard let index = rawExchanges.firstIndex(where: { $0.connection === connection }) else { return }
        rawExchanges.remove(at: index).finish()
    }
}
