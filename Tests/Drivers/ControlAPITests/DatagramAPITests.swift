#if os(Linux)
import ControlAPI
import Foundation
import TestSupport
import Testing
import Wire

/// Proxies of datagrams of the API, with sockets.
@Suite(.tags(.servers), .timeLimit(.minutes(5))) struct DatagramAPITests {
    private let proxy = "/slowlane/v1/proxies/p"

    /// Sends a datagram to the server and back. Returns the time of the round trip.
    @discardableResult
    private func exchange(_ port: Int, _ server: TestDatagramSocket) throws -> Duration {
        let client = try TestDatagramSocket(connectedTo: port)
        let start = ContinuousClock.now
        try client.send([1, 2])
        let request = try #require(try server.receive())
        #expect(request.bytes == [1, 2])
        try server.send([3], to: request.port)
        #expect(try #require(try client.receive()).bytes == [3])
        return ContinuousClock.now - start
    }

    @Test func aProxyForwardsDatagramsUnderTheLinkOfTheAPI() async throws {
        let server = try TestDatagramSocket()
        try await withServer(metrics: .init(proxies: true, process: false)) { (call, _) async throws in
            let port = try await call.proxy(to: server.port, #","protocol":"udp""#)
            #expect(try await call("GET", "/proxies").json?.object?["p"]?.object?["protocol"]?.text == "udp")
            try exchange(port, server)
            let slow =
                #"{"conditions":{"down":{"delay":"40 ms"},"up":{"delay":"40 ms"},"mtu":1280,"udp_idle_ms":60000}}"#
            let link = try await call("PUT", "\(proxy)/link", slow)
            #expect(link.json?.object?["mtu"] == .integer(1280), "\(link.body)")
            #expect(try exchange(port, server) >= .milliseconds(80))

            #expect(
                try await call("PUT", "\(proxy)/link", #"{"conditions":{"down":{},"up":{},"udp":"refuse"}}"#).status
                    == 200)
            let client = try TestDatagramSocket(connectedTo: port)
            try client.send([1])
            #expect(throws: TestSocket.Failure(call: "recv", code: ECONNREFUSED)) { try client.receive() }
            let udp = try await call("GET", proxy).json?.object?["udp"]?.object
            #expect(udp?["refuses"] == .bool(true) && udp?["sessions"] == .integer(2))
            #expect(udp?["received"]?.object?["up"] == .integer(2))

            #expect(try await call("DELETE", "\(proxy)/link").status == 200)
            let connections = try #require(try await call("GET", "\(proxy)/connections").json).array
            #expect(connections.map { $0.object?["protocol"]?.text } == ["udp", "udp"])
            #expect(try await call("DELETE", "\(proxy)/connections").status == 204)
            #expect(try await call("GET", "\(proxy)/connections").body == "[]")
            let metrics = try await call("GET", "/metrics").body
            #expect(metrics.contains("slowlane_udp_sessions_total{") && metrics.contains("slowlane_udp_sessions{"))
        }
    }

    @Test func aProxyOfDatagramsStopsAndStartsOnItsPort() async throws {
        let server = try TestDatagramSocket()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: server.port, #","protocol":"tcp,udp""#)
            try exchange(port, server)
            #expect(try await call("POST", "/proxies/p", #"{"enabled":false}"#).status == 200)
            let client = try TestDatagramSocket(connectedTo: port)
            try client.send([1])
            #expect(throws: TestSocket.Failure(call: "recv", code: ECONNREFUSED)) { try client.receive() }
            #expect(try await call("POST", "/proxies/p", #"{"enabled":true}"#).status == 200)
            try exchange(port, server)
            let total = try await call("GET", proxy).json?.object
            #expect(total?["protocol"]?.text == "tcp,udp")
        }
    }

    @Test func whatUDPDoesNotSupportIsAnError() async throws {
        try await withServer { (call, _) async throws in
            for (fields, error) in [
                (#""upstream":"127.0.0.1:9","protocol":"quic""#, "protocol 'quic' must be tcp, udp or tcp,udp"),
                (#""forward":true,"protocol":"udp""#, "a forward proxy forwards TCP and the datagrams of SOCKS 5"),
                (#""upstream":"https://a.test","protocol":"udp""#, "an upstream with TLS is one of TCP"),
            ] {
                let response = try await call("POST", "/proxies", #"{"name":"q","listen":"127.0.0.1:0",\#(fields)}"#)
                #expect(response.status == 400 && response.error?.contains(error) == true, "\(response.body)")
            }
            _ = try await call.proxy(to: 9, #","protocol":"udp""#)
            let changed = try await call("POST", "/proxies/p", #"{"protocol":"tcp"}"#)
            #expect(changed.status == 400 && changed.error?.contains("is not changed") == true, "\(changed.body)")
            let link = #"{"conditions":{"down":{},"up":{},"mtu":40}}"#
            #expect(try await call("PUT", "\(proxy)/link", link).error?.contains("from 68 to 65535") == true)
        }
    }
}
#endif
