import ControlAPI
import ForwardProxy
import Foundation
import LinkModel
import NIOPosix
import Proxy
import TestSupport
import Testing
import Wire

/// Forward proxies of the API with sockets.
@Suite(.tags(.servers), .timeLimit(.minutes(5))) struct ForwardProxyAPITests {
    private let rules = "/slowlane/v1/proxies/f/rules"

    /// Responds to each request with its target.
    private static func origin() throws -> Upstream {
        try Upstream { socket in
            var head: [UInt8] = []
            while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
                let bytes = try socket.receive()
                if bytes.isEmpty { return }
                head += bytes
            }
            let target = String(decoding: head, as: UTF8.self).split(separator: " ")[1]
            let length = target.utf8.count
            try socket.send(
                Array("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\nConnection: close\r\n\r\n\(target)".utf8))
        }
    }

    /// Creates a forward proxy on which `*.test` is this machine, and returns its port.
    private func create(_ call: HTTPCall, _ more: String = "") async throws -> Int {
        let response = try await call(
            "POST", "/proxies", #"{"name":"f","forward":true,"map":["*.test=127.0.0.1"]\#(more)}"#)
        #expect(response.status == 201, "\(response.body)")
        let listen = try #require(response.json?.object?["listen"]?.text)
        return try #require(listen.split(separator: ":").last.flatMap { Int($0) })
    }

    /// Sends a request through a proxy.
    private func get(
        _ host: String, _ origin: Upstream, through port: Int, _ fields: String = ""
    ) async throws -> HTTPReply {
        let name = "\(host):\(origin.port)"
        return try await blocking {
            try HTTPPeer(port: port).raw("GET http://\(name)/a?b HTTP/1.1\r\nHost: \(name)\r\n\(fields)\r\n")
        }
    }

    @Test func clientsNameTheServerAndHostsAreCounted() async throws {
        let origin = try Self.origin()
        try await withServer { (call, _) async throws in
            let port = try await create(call)
            let reply = try await get("api.test", origin, through: port)
            #expect(reply.status == 200 && reply.body == "/a?b")
            _ = try await get("api.test", origin, through: port)
            #expect(try await call("PUT", rules, #"{"to":["cdn.test=refuse"]}"#).status == 200)
            let refused = try await get("cdn.test", origin, through: port)
            #expect(refused.status == 502)
            #expect(refused.header("Proxy-Status")?.contains("connection_refused") == true)
            // An ended connection is counted when both sockets are closed.
            var hosts: [JSONValue] = []
            for _ in 0..<1000 where hosts.first?["connections"] != .integer(2) || hosts.count < 2 {
                hosts = try await call("GET", "/slowlane/v1/proxies/f/hosts").json?["hosts"].array ?? []
            }
            #expect(hosts.map { $0["host"] } == [.text("api.test"), .text("cdn.test")])
            #expect(hosts.map { $0["port"] } == [.integer(Int64(origin.port)), .integer(Int64(origin.port))])
            #expect(hosts.map { $0["connections"] } == [.integer(2), .integer(0)])
            #expect(hosts.map { $0["connections_failed"] } == [.integer(0), .integer(1)])
            guard case .integer(let up)? = hosts.first?["bytes"]["up"] else { throw NoCounterError() }
            #expect(up > 0)
        }
    }

    private struct NoCounterError: Error {}

    @Test func rulesChangeWhileTheProxyRunsAndResetRestoresThem() async throws {
        let origin = try Self.origin()
        try await withServer { (call, _) async throws in
            let port = try await create(call, #","to":["cdn.test=refuse"]"#)
            #expect(try await get("cdn.test", origin, through: port).status == 502)
            #expect(try await call("PUT", rules, #"{"to":["api.test=refuse"]}"#).status == 200)
            #expect(try await get("cdn.test", origin, through: port).status == 200)
            #expect(try await get("api.test", origin, through: port).status == 502)
            #expect(try await call("POST", "/reset").status == 204)
            #expect(try await get("cdn.test", origin, through: port).status == 502)
            #expect(try await get("api.test", origin, through: port).status == 200)
            // A proxy that is enabled again has the rules that it had.
            #expect(try await call("POST", "/proxies/f", #"{"enabled":false}"#).status == 200)
            #expect(try await call("PUT", rules, #"{"to":["a.test=refuse"]}"#).status == 200)
            #expect(try await call("POST", "/proxies/f", #"{"enabled":true}"#).status == 200)
            #expect(try await get("a.test", origin, through: port).status == 502)
        }
    }

    @Test func aRuleMayHaveALinkWithoutAProfile() async throws {
        let origin = try Self.origin()
        try await withServer { (call, _) async throws in
            let link = #"{"netem":{"down":"delay 150ms","up":"delay 150ms"}}"#
            let port = try await create(call, #","to":[{"pattern":"far.test","link":\#(link)}]"#)
            #expect(try await get("api.test", origin, through: port).status == 200)
            let start = ContinuousClock.now
            #expect(try await get("far.test", origin, through: port).status == 200)
            // The handshake and the exchange have a round trip each.
            #expect(ContinuousClock.now - start >= .milliseconds(600))
        }
    }

    @Test func clientsOfOtherMachinesNeedNetworksOrCredentials() async throws {
        let origin = try Self.origin()
        try await withServer { (call, _) async throws in
            let port = try await create(call, #","listen":"0.0.0.0:0","user":"ada","password":"secret""#)
            func status(_ login: String?) async throws -> Int {
                let field = login.map { "Proxy-Authorization: Basic \(Data($0.utf8).base64EncodedString())\r\n" } ?? ""
                return try await get("api.test", origin, through: port, field).status
            }
            #expect(try await status(nil) == 407)
            #expect(try await status("ada:secret") == 200)
            // Without credentials every machine could use it, so they remain.
            let open = try await call("POST", "/proxies/f", #"{"user":""}"#)
            #expect(open.status == 400 && open.error?.contains("every machine of the network") == true)
            #expect(try await status(nil) == 407)
            #expect(try await call("POST", "/proxies/f", #"{"user":"ada","password":"other"}"#).status == 200)
            #expect(try await status("ada:secret") == 407)
            #expect(try await status("ada:other") == 200)
            #expect(try await call("POST", "/proxies/f", #"{"user":"","allow":["192.0.2.0/24"]}"#).status == 200)
            #expect(try await status(nil) == 200)
            // A move to another address keeps the proxy if the address is refused.
            #expect(try await call("POST", "/proxies/f", #"{"listen":"127.0.0.1:0","allow":[]}"#).status == 200)
            let moved = try await call("POST", "/proxies/f", #"{"listen":"0.0.0.0:0"}"#)
            #expect(moved.status == 400)
            #expect(try await call("GET", "/proxies/f").json?["enabled"] == .bool(true))
        }
    }

    @Test func populateChangesTheRulesOfARunningProxy() async throws {
        let origin = try Self.origin()
        try await withServer { (call, _) async throws in
            let port = try await create(call)
            let open = try await blocking { try TestSocket.connect(port: port) }
            try await blocking {
                try open.send(Array("CONNECT api.test:\(origin.port) HTTP/1.1\r\n\r\n".utf8))
                #expect(try open.receive().starts(with: Array("HTTP/1.1 200".utf8)))
            }
            let definition =
                #"{"name":"f","forward":true,"listen":"127.0.0.1:\#(port)","map":["*.test=127.0.0.1"],"to":["api.test=refuse"]}"#
            #expect(try await call("POST", "/populate", "[\(definition)]").status == 201)
            #expect(try await get("api.test", origin, through: port).status == 502)
            try await blocking {
                try open.send(Array("GET /still HTTP/1.1\r\n\r\n".utf8))
                #expect(String(decoding: try open.receiveToEnd(), as: UTF8.self).hasSuffix("/still"))
            }
        }
    }

    @Test func theProxyOfACommandHasItsOwnRules() async throws {
        let origin = try Self.origin()
        try await withServer { (call, api) async throws in
            let settings = try ForwardSettings(to: ["cdn.test=./office.yaml"], maps: ["*.test=127.0.0.1"]) { _ in .clear
            }
            var configuration = ProxyConfiguration(
                listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: 0))
            configuration.forward = settings
            let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
            let adopted = await api.adopt(
                proxy, named: "f", upstream: API.forwardUpstream, conditions: .clear, profile: nil, timeline: nil,
                seed: 1, forward: settings)
            let office = #"{"pattern":"cdn.test","link":{"profile":"./office.yaml"}}"#
            let before = try await call("GET", rules)
            #expect(before.body == #"{"to":[\#(office)],"map":["*.test=127.0.0.1"]}"#)
            // The API does not read the file again.
            let changed = try await call("PUT", rules, #"{"to":[\#(office),"a.test=refuse"]}"#)
            #expect(changed.status == 200, "\(changed.body)")
            #expect(try await get("a.test", origin, through: proxy.address.port).status == 502)
            await proxy.changeForward { _ = $0.rules.rules.removeLast() }
            await adopted.forwardChanged()
            #expect(try await call("GET", rules).body == before.body)
            #expect(try await call("GET", "/slowlane/v1/proxies/f/hosts").json?["hosts"].array.count == 1)
            await proxy.close()
        }
    }
}
