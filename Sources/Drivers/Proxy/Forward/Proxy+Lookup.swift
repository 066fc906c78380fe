public import ForwardProxy
internal import LinkModel
public import NIOCore

extension Proxy {
    /// Looks up a host for a client that then connects to the address itself, as in connect mode: with the delay, the
    /// failures and the cache of a forward proxy's own look-ups.
    public func addresses(of host: String) async -> Result<[SocketAddress], ConnectFailure> {
        await query { core in
            let promise = core.eventLoop.makePromise(of: Result<[SocketAddress], ConnectFailure>.self)
            core.lookUp(host) { promise.succeed($0) }
            return promise.futureResult
        }
    }
}

extension ProxyCore {
    /// Passes the addresses of a host, or the reason for which there are none.
    fileprivate func lookUp(_ host: String, _ done: @escaping (Result<[SocketAddress], ConnectFailure>) -> Void) {
        guard let forward, !isStopping else { return done(.failure(.unreachable)) }
        let destination = Destination(host: host, port: 0)
        guard forward.policy.permitsHost(of: destination) else { return done(.failure(.notAllowed)) }
        let treatment = forward.rules.rule(for: destination)?.treatment
        let driver = driver(for: treatment)
        guard [.open, .portal].contains(driver.conditions.connectionPolicy) else {
            return done(.failure(.nameServerFailure))
        }
        // The client's resolver has a search list of its own.
        names.look(
            up: destination, at: destination, on: driver, answer: treatment?.lookupAnswer, searches: false, done)
    }
}
