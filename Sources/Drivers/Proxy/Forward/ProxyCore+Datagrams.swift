public import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore

/// The datagrams of a forward proxy.
extension ProxyCore {
    private func makeForwardDatagrams() throws -> ForwardDatagrams {
        if let forwardDatagrams { return forwardDatagrams }
        let datagrams = try ForwardDatagrams(self)
        linkDriver.forwardDatagrams = datagrams
        return datagrams
    }

    func closeDatagrams() {
        datagramPort?.close()
        countDatagrams(in: &hostTraffic)
        forwardDatagrams?.closeAll()
        for driver in linkDriver.links { driver.forwardDatagrams = nil }
    }

    #if os(Linux)
    /// Opens the port of a client's association. Returns it with its number; `nil` without a free file.
    func associate(
        at local: SocketAddress, client: SocketAddress, port: Int
    ) -> (association: ForwardDatagrams.Port, port: Int)? {
        guard !isStopping, let datagrams = try? makeForwardDatagrams(),
            let association = try? datagrams.associate(at: local, client: client, port: port)
        else { return nil }
        return (association, association.number)
    }

    func end(_ association: ForwardDatagrams.Port) { forwardDatagrams?.close(association) }

    /// Returns the port of 127.0.0.1 whose datagrams go to a destination.
    fileprivate func datagramPort(to destination: Destination) throws -> Int? {
        guard forward != nil, !isStopping else { return nil }
        return try makeForwardDatagrams().port(to: destination)
    }

    /// The sessions on all links, and the counters of the device's link.
    var forwardDatagramStatus: DatagramStatus? {
        guard let forwardDatagrams else { return nil }
        var status = DatagramStatus()
        status.sessions = forwardDatagrams.sessions.count
        status.counters = linkDriver.link.datagramCounters
        status.sendFailures = forwardDatagrams.sendFailures
        return status
    }

    /// Adds the bytes of open sessions to the counters of their destinations.
    func countDatagrams(in table: inout HostTrafficTable) {
        guard let forwardDatagrams else { return }
        for driver in linkDriver.links {
            for session in driver.link.datagramSessions {
                let key = ForwardDatagrams.Key(link: driver.number, flow: session.id)
                guard let destination = forwardDatagrams.sessions[key]?.route.destination else { continue }
                table.change(destination) { row in
                    for direction in Direction.allCases { row.bytes[direction] += session.bytesRead[direction] }
                }
            }
        }
    }
    #else
    func associate(
        at local: SocketAddress, client: SocketAddress, port: Int
    ) -> (association: ForwardDatagrams.Port, port: Int)? { nil }

    func end(_ association: ForwardDatagrams.Port) {}

    fileprivate func datagramPort(to destination: Destination) throws -> Int? { nil }

    var forwardDatagramStatus: DatagramStatus? { nil }

    func countDatagrams(in table: inout HostTrafficTable) {}
    #endif
}

extension Proxy {
    /// Returns the port of 127.0.0.1 whose datagrams a forward proxy sends to a destination, over its link, and from which it
    /// sends the responses; `nil` without a free one. Blocking; call off the event loop.
    public func datagramPort(to destination: Destination) -> Int? {
        (try? eventLoop.submit { [core] in try core.value.datagramPort(to: destination) }.wait()) ?? nil
    }
}
