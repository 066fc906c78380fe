package import ForwardProxy
internal import Foundation
internal import Synchronization

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The name server to which a supervisor redirects a command's resolver (UDP).
///
/// Look-ups of addresses are answered by a function. Queries of other types go to the name server that the resolver
/// wanted to ask.
package final class NameServer: Sendable {
    private struct State {
        /// The name servers that resolvers wanted to ask, by the resolvers' ports.
        var servers: [Int: ConnectAddress] = [:]
        var queries = 0
        var isStopped = false
    }

    /// The maximum number of concurrent queries; further ones get no response.
    private static let queriesMax = 256
    /// The maximum number of remembered resolvers.
    private static let serversMax = 4_096
    /// The longest message, and the time limit of another name server.
    private static let (messageMax, relayTimeMax) = (4_096, timeval(tv_sec: 5, tv_usec: 0))

    /// The time to live of a response in seconds: a client asks again for each of its connections, as a rule, and the
    /// proxy has the cache.
    private static let timeToLive: UInt8 = 1

    /// The port on 127.0.0.1.
    package let port: Int
    private let socket: CInt
    private let answer: @Sendable (_ name: String) async -> NameAnswer
    private let state = Mutex(State())

    /// Starts a name server; `nil` if there is no socket for it.
    package init?(answer: @escaping @Sendable (_ name: String) async -> NameAnswer) {
        guard let (socket, port) = LoopbackSocket.open(isStream: false) else { return nil }
        (self.socket, self.port, self.answer) = (socket, port, answer)
        Thread.detachNewThread { [self] in
            while receive() {}
            close(socket)
        }
    }

    /// Ends the name server.
    package func stop() {
        state.withLock { $0.isStopped = true }
        shutdown(socket, CInt(SHUT_RDWR))
    }

    /// Records the name server that the resolver on a port wants to ask.
    func record(_ server: ConnectAddress, resolverPort: Int) {
        state.withLock { state in
            if state.servers.count >= Self.serversMax { state.servers = [:] }
            state.servers[resolverPort] = server
        }
    }

    /// Receives a message. Returns `false` at the end.
    private func receive() -> Bool {
        var bytes = [UInt8](repeating: 0, count: Self.messageMax)
        var sender = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = withUnsafeMutablePointer(to: &sender) { sender in
            sender.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(socket, &bytes, bytes.count, 0, $0, &length)
            }
        }
        let isAccepted = state.withLock { state in
            guard !state.isStopped, count > 0, state.queries < Self.queriesMax else { return false }
            state.queries += 1
            return true
        }
        guard isAccepted else { return !state.withLock { $0.isStopped } }
        let (message, client) = (Array(bytes.prefix(count)), sender)
        if let query = DNSQuery(message), query.type != nil {
            Task { respond(query.response(await answer(query.name), timeToLive: Self.timeToLive), to: client) }
        } else {
            let server = state.withLock { $0.servers[Int(UInt16(bigEndian: client.sin_port))] }
            Thread.detachNewThread { [self] in
                respond(server.flatMap { Self.relay(message, to: $0) }, to: client)
            }
        }
        return true
    }

    private func respond(_ message: [UInt8]?, to client: sockaddr_in) {
        state.withLock { state in
            state.queries -= 1
            guard let message, !state.isStopped else { return }
            var client = client
            withUnsafePointer(to: &client) { client in
                client.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = sendto(socket, message, message.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
    }

    /// Asks another name server. Blocking.
    private static func relay(_ message: [UInt8], to server: ConnectAddress) -> [UInt8]? {
        guard let socket = LoopbackSocket.connectDatagrams(to: server) else { return nil }
        defer { close(socket) }
        var limit = relayTimeMax
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var bytes = [UInt8](repeating: 0, count: messageMax)
        guard send(socket, message, message.count, 0) == message.count else { return nil }
        let count = recv(socket, &bytes, bytes.count, 0)
        return count > 0 ? Array(bytes.prefix(count)) : nil
    }
}
