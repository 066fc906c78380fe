import ControlAPI
import Foundation
import NIOPosix
import Synchronization
import TestSupport
import Testing
import Wire

/// The stream of events over HTTP, with proxies that have sockets.
@Suite(.tags(.servers), .timeLimit(.minutes(2))) struct EventStreamTests {
    /// The events that a reader has got.
    private final class Events: Sendable {
        private let events = Mutex<[(type: String, data: JSONValue)]>([])

        func append(_ event: EventStreamParser.Event) {
            guard let data = JSONText.parse(Array(event.data.utf8)) else {
                Issue.record("not JSON: \(event.data)")
                return
            }
            events.withLock { $0.append((event.type, data)) }
        }

        /// Waits for an event.
        func wait(_ type: String, where isWanted: (JSONValue) -> Bool = { _ in true }) async throws -> JSONValue {
            for _ in 0..<1000 {
                if let event = events.withLock({ $0.first { $0.type == type && isWanted($0.data) } }) {
                    return event.data
                }
                try await Task.sleep(for: .milliseconds(10))
            }
            Issue.record("no event \(type): \(events.withLock { $0.map { "\($0.type) \($0.data.json)" } })")
            throw CancellationError()
        }
    }

    private func withReader(_ body: (HTTPCall, Events) async throws -> Void) async throws {
        try await withServer { (call, _) async throws in
            let client = try #require(APIClient(url: "127.0.0.1:\(call.port)", token: nil, userAgent: "test"))
            let events = Events()
            let reading = Task { try await client.readEvents(proxy: nil, after: nil) { events.append($0) } }
            _ = try await events.wait("hello")
            try await body(call, events)
            reading.cancel()
            _ = await reading.result
        }
    }

    /// An HTTP server that responds with 200 to each request.
    private static func server() throws -> Upstream {
        try Upstream { socket in
            var bytes: [UInt8] = []
            while true {
                let read = try socket.receive()
                if read.isEmpty { return }
                bytes += read
                while let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) {
                    bytes.removeFirst(end.upperBound)
                    try socket.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8))
                }
            }
        }
    }

    @Test func exchangesConnectionsAndFaultsAreReported() async throws {
        let upstream = try Self.server()
        try await withReader { (call, events) async throws in
            let port = try await call.proxy(to: upstream.port)
            let proxy = HTTPCall(port: port)
            // The observation of a new proxy begins after the response to the call that has created it.
            _ = try await events.wait("summary")
            #expect(try await proxy("GET", "/a%3Cb%3E?x=1").status == 200)
            let exchange = try await events.wait("exchange") { $0["end"].text == "completed" }
            #expect(exchange["method"].text == "GET" && exchange["target"].text == "/a%3Cb%3E?x=1")
            #expect(exchange["status"] == .integer(200) && exchange["response_bytes"] == .integer(2))
            let order = [
                "opened", "started", "request_delivered", "response_started", "response_read", "response_delivered",
            ]
            let times = order.compactMap { exchange["times"][$0].number }
            #expect(times.count == order.count && times == times.sorted())
            let closed = try await events.wait("connection") { $0["state"].text == "closed" }
            #expect(closed["reason"].text == "client closed" && closed["bytes"]["down"] == .integer(40))
            #expect(closed["number"] == exchange["connection"])

            _ = try await call("POST", "/slowlane/v1/proxies/p/faults", #"{"rule":"PUT * before-response reset"}"#)
            _ = try await events.wait("fault") { $0["change"].text == "added" }
            _ = try? await proxy("PUT", "/b")
            let lost = try await events.wait("exchange") { $0["end"].text == "lost-after-commit" }
            #expect(lost["fault"]["name"].text == "fault_1" && lost["target"].text == "/b")
            let fired = try await events.wait("fault") { $0["change"].text == "fired" }
            #expect(fired["exchange"] == lost["id"] && fired["point"].text == "before-response")
            let cut = try await events.wait("connection") { $0["reason"].text == "fault" }
            #expect(cut["number"] == lost["connection"])
        }
    }

    @Test func summariesAndTimelinesAreReported() async throws {
        let upstream = try Self.server()
        try await withReader { (call, events) async throws in
            let port = try await call.proxy(to: upstream.port)
            _ = try await call(
                "PUT", "/slowlane/v1/proxies/p/link", #"{"timeline":"0s: wifi, 300ms: 100-loss, 600ms: wifi"}"#)
            let stalled = try await events.wait("link") { $0["by"].text == "timeline" && $0["name"].text == "100-loss" }
            #expect(stalled["down"]["loss_percent"] == .integer(100))
            let summary = try await events.wait("summary") { $0["stalled"]["up"] == .bool(true) }
            #expect(summary["timeline"]["state"].text == "running" && summary["timeline"]["link"].text == "100-loss")
            _ = try await events.wait("link") { $0["by"].text == "timeline" && $0["name"].text == "wifi" }
            #expect(try await HTTPCall(port: port)("GET", "/").status == 200)
            let moved = try await events.wait("summary") { ($0["bytes"]["down"].number ?? 0) >= 40 }
            #expect(moved["connections_accepted"] == .integer(1))
        }
    }

    /// The page needs no token; its calls do.
    @Test func thePageNeedsNoTokenAndItsCallsDo() async throws {
        try await withServer(token: "secret") { (call, _) async throws in
            let page = try await call("GET", "/", headers: ["Accept: text/html"])
            #expect(page.status == 200 && page.header("X-Content-Type-Options") == "nosniff")
            #expect(page.header("Referrer-Policy") == "no-referrer")
            #expect(try await call("POST", "/dashboard/app.js").status == 401)
            #expect(try await call("GET", "/slowlane/v1/events").status == 401)
            #expect(try await call("GET", "/", headers: ["Accept: text/html", "Host: example.com"]).status == 403)
        }
    }
}
