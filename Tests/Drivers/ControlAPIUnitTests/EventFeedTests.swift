import HTTPTypes
import NIOPosix
import Synchronization
import TestSupport
import Testing
import Wire

@testable import ControlAPI
@testable import Proxy

/// Readers of the stream of events, without sockets.
@Suite(.timeLimit(.minutes(20))) struct EventFeedTests {
    /// A reader of an API's stream.
    private final class Reader {
        private let stream: @Sendable () async -> String?
        private var parser = EventStreamParser()
        private var events: [EventStreamParser.Event] = []

        init(_ call: APICall, _ query: String = "", lastID: String? = nil) async throws {
            var request = HTTPRequest(
                method: .get, scheme: "http", authority: "localhost", path: "/slowlane/v1/events\(query)")
            request.headerFields[HTTPField.Name("Last-Event-ID")!] = lastID
            let response = await call.api.respond(to: request, body: [])
            #expect(response.status == .ok && response.type == "text/event-stream", "\(response.body)")
            stream = try #require(response.stream)
        }

        /// Returns the next event of a type; `nil` at the end of the stream.
        func next(_ types: String...) async throws -> (id: String, type: String, data: JSONValue)? {
            while true {
                while !events.isEmpty {
                    let event = events.removeFirst()
                    guard types.isEmpty || types.contains(event.type) else { continue }
                    let data = try #require(JSONText.parse(Array(event.data.utf8)))
                    return (event.id, event.type, data)
                }
                guard let part = await stream() else { return nil }
                events += try parser.receive(Array(part.utf8))
            }
        }
    }

    @Test func theFirstEventIsASnapshotAndChangesFollow() async throws {
        let call = APICall()
        try await call.proxy("b")
        try await call.proxy("a")
        let reader = try await Reader(call)
        let hello = try #require(try await reader.next())
        #expect(hello.type == "hello" && hello.data["schema"] == .integer(1))
        #expect(hello.data["proxies"].array.map { $0["proxy"].text } == ["a", "b"])
        #expect(hello.data["version"].text == "test" && hello.data["dashboard"].text == "on")
        _ = try await call("PUT", "/slowlane/v1/proxies/a/link", #"{"profile":"edge"}"#)
        let link = try #require(try await reader.next("link", "proxy"))
        #expect(link.data["proxy"].text == "a" && link.data["profile"].text == "edge")
        #expect(link.data["by"].text == "api" && link.data["applies"] == .bool(true) && link.data["since"] != .null)
        try await call.proxy("c")
        #expect(try await reader.next("link", "proxy")?.data["change"].text == "created")
        _ = try await call("DELETE", "/proxies/b")
        #expect(try await reader.next("proxy")?.data["change"].text == "deleted")
        await call.api.close()
        while let event = try await reader.next() { #expect(event.type != "hello") }
    }

    @Test func aFilterLimitsTheStreamToAProxy() async throws {
        let call = APICall()
        try await call.proxy("a b")
        try await call.proxy("c")
        let reader = try await Reader(call, "?proxy=a%20b")
        #expect(try await reader.next("hello")?.data["proxies"].array.count == 1)
        _ = try await call("PUT", "/slowlane/v1/proxies/c/link", #"{"profile":"3g"}"#)
        _ = try await call("PUT", "/slowlane/v1/proxies/a%20b/link", #"{"profile":"edge"}"#)
        #expect(try await reader.next("link")?.data["profile"].text == "edge")
        await call.api.close()
    }

    @Test func aReaderResumesAfterItsLastEvent() async throws {
        let call = APICall()
        try await call.proxy()
        let reader = try await Reader(call)
        let hello = try #require(try await reader.next())
        for profile in ["edge", "3g"] {
            _ = try await call("PUT", "/slowlane/v1/proxies/p/link", #"{"profile":"\#(profile)"}"#)
        }
        let first = try #require(try await reader.next("link"))
        let second = try await Reader(call, lastID: first.id)
        #expect(try await second.next("hello", "link")?.data["profile"].text == "3g")
        let third = try await Reader(call, "?last_event_id=\(hello.id)")
        #expect(try await third.next("hello", "link")?.data["profile"].text == "edge")
        for position in ["1", "9007199254740991", "x"] {
            let other = try await Reader(call, lastID: position)
            let dropped = try #require(try await other.next())
            #expect(dropped.type == "dropped" && dropped.data["reason"].text == "restart")
            #expect(dropped.data["count"] == .null)
            #expect(try await other.next()?.type == "hello")
        }
        await call.api.close()
    }

    @Test func theNumberOfReadersIsLimited() async throws {
        var limits = ServerLimits()
        limits.eventReadersMax = 2
        let call = APICall(limits: limits)
        var readers = [try await Reader(call), try await Reader(call)]
        let refused = try await call("GET", "/slowlane/v1/events")
        #expect(refused.status == .serviceUnavailable && refused.error?.contains("2 readers") == true)
        readers.removeLast()
        let another = try await Reader(call)
        #expect(try await another.next("hello") != nil)
        await call.api.close()
    }

    @Test func unknownParametersAreRefused() async throws {
        let call = APICall()
        #expect(try await call("GET", "/slowlane/v1/events?proxies=a").error?.contains("'proxies'") == true)
        #expect(try await call("GET", "/slowlane/v1/events?proxy=%FF").status == .badRequest)
        #expect(call.api.registry.feed.readerCount == 0)
    }

    /// Nothing is collected without readers, after the time in which the last one may resume.
    @Test func theFeedStopsAfterItsLastReader() async throws {
        let time = Mutex<Int64>(1_000_000_000_000)
        let feed = EventFeed(version: "test", dashboard: "on") { time.withLock { $0 } }
        #expect(!feed.isActive)
        var reader = feed.connect(filter: nil, after: nil) {}
        #expect(await reader?.next()?.contains("event: hello") == true)
        #expect(feed.isActive)
        time.withLock { $0 += 16_000_000_000 }
        #expect(await reader?.next() == ": keep-alive\n\n")
        reader = nil
        #expect(feed.readerCount == 0)
        time.withLock { $0 += 29_000_000_000 }
        try await Task.sleep(for: .milliseconds(150))
        #expect(feed.isActive)
        time.withLock { $0 += 2_000_000_000 }
        for _ in 0..<100 where feed.isActive { try await Task.sleep(for: .milliseconds(20)) }
        #expect(!feed.isActive)
    }

    @Test func aCancelledReaderEnds() async throws {
        let feed = EventFeed(version: "test", dashboard: "on")
        let reader = try #require(feed.connect(filter: nil, after: nil) {})
        _ = await reader.next()
        let waiting = Task { await reader.next() }
        waiting.cancel()
        #expect(await waiting.value == nil)
        feed.close()
    }

    @Test func aLinkIsResetAfterItsTime() async throws {
        let call = APICall()
        try await call.proxy("p", #","link":{"profile":"wifi"}"#)
        let reader = try await Reader(call)
        _ = try await reader.next("hello")
        let set = try await call(
            "PUT", "/slowlane/v1/proxies/p/link", #"{"profile":"edge","reset_after_ms":150}"#)
        #expect(set.status == .ok && set.warnings.isEmpty && set.object?["reset_at"] != .null)
        #expect(try await reader.next("link")?.data["reset_at"] != .null)
        let reset = try #require(try await reader.next("link"))
        #expect(reset.data["by"].text == "reset_after" && reset.data["profile"].text == "wifi")
        #expect(reset.data["reset_at"] == .null)
        // A later setting replaces the time.
        _ = try await call("PUT", "/slowlane/v1/proxies/p/link", #"{"profile":"edge","reset_after_ms":50}"#)
        _ = try await call("PUT", "/slowlane/v1/proxies/p/link", #"{"profile":"3g"}"#)
        try await Task.sleep(for: .milliseconds(120))
        #expect(try await call("GET", "/slowlane/v1/proxies/p/link").object?["profile"]?.text == "3g")
        for time in ["0", "-1", "1e12", "\"x\""] {
            let body = #"{"profile":"edge","reset_after_ms":\#(time)}"#
            #expect(try await call("PUT", "/slowlane/v1/proxies/p/link", body).status == .badRequest)
        }
        await call.api.close()
    }

    @Test func responsesNameTheImpairedProxies() async throws {
        let call = APICall()
        let name = HTTPField.Name("Slowlane-Conditions")!
        try await call.proxy("a/\u{E9}")
        try await call.proxy("b")
        #expect(try await call("GET", "/proxies").headers[name] == nil)
        _ = try await call("POST", "/proxies/b/toxics", #"{"type":"noop"}"#)
        #expect(try await call("GET", "/proxies").headers[name] == "b")
        #expect(try await call("POST", "/slowlane/v1/reset").headers[name] == nil)
        _ = try await call("DELETE", "/proxies/b")
        for number in 0..<12 { try await call.proxy("p\(number)", #","link":{"profile":"edge"}"#) }
        #expect(try await call("GET", "/version").headers[name]?.hasSuffix(", ...") == true)
        await call.api.close()
    }
}

/// The files of the dashboard.
@Suite struct DashboardTests {
    private func get(
        _ path: String, accept: String? = "text/html", method: HTTPRequest.Method = .get, tag: String? = nil,
        _ dashboard: Dashboard = Dashboard()
    ) async -> API.Response {
        let api = API(
            seed: 1, version: "test", dashboard: dashboard, on: MultiThreadedEventLoopGroup.singleton)
        var request = HTTPRequest(method: method, scheme: "http", authority: "localhost", path: path)
        request.headerFields[.accept] = accept
        request.headerFields[.ifNoneMatch] = tag
        return await api.respond(to: request, body: [])
    }

    @Test func browsersGetThePageAndOthersToxiproxysResponse() async throws {
        let page = await get("/")
        #expect(page.status == .ok && page.type == "text/html; charset=utf-8")
        #expect(page.body.contains("/dashboard/app.js"))
        #expect(page.headers[.contentSecurityPolicy]?.contains("default-src 'none'") == true)
        #expect(await get("/", method: .head).status == .ok)
        let other = await get("/", accept: "*/*")
        #expect(other.status == .notFound && other.body == "404 page not found\n")
        #expect(await get("/", Dashboard(mode: .off)).status == .notFound)
        #expect(await get("/dashboard/app.js", Dashboard(mode: .off)).status == .notFound)
    }

    @Test func filesHaveTheirTypesAndTags() async throws {
        for (name, type) in [
            ("app.js", "text/javascript; charset=utf-8"), ("style.css", "text/css; charset=utf-8"),
            ("icon.svg", "image/svg+xml"),
        ] {
            let file = await get("/dashboard/\(name)", accept: nil)
            #expect(file.status == .ok && file.type == type && !file.body.isEmpty)
            let tag = try #require(file.headers[.eTag])
            let again = await get("/dashboard/\(name)", accept: nil, tag: tag)
            #expect(again.status == .notModified && again.body.isEmpty && again.headers[.eTag] == tag)
        }
    }

    @Test(arguments: [
        "/dashboard/", "/dashboard/none.js", "/dashboard/.hidden.js", "/dashboard/%2e%2e%2fapp.js",
        "/dashboard/..%2F..%2Fetc%2Fpasswd", "/dashboard/app.js/x", "/dashboard/app", "/dashboard/app.js%00.html",
    ]) func otherFilesAreNotServed(path: String) async {
        let response = await get(path)
        #expect(response.status == .notFound || response.status == .movedPermanently, "\(response.status)")
        let folder = await get(path, Dashboard(folder: "/etc"))
        #expect(folder.status == .notFound || folder.status == .movedPermanently)
    }

    @Test func theReadOnlyModeRefusesChangesOfBrowsers() async throws {
        let api = API(
            seed: 1, version: "test", dashboard: Dashboard(mode: .view), on: MultiThreadedEventLoopGroup.singleton)
        func status(_ method: HTTPRequest.Method, _ path: String, _ name: String? = nil, _ value: String = "1")
            async throws -> Int
        {
            var request = HTTPRequest(method: method, scheme: "http", authority: "localhost", path: path)
            if let name { request.headerFields[try #require(HTTPField.Name(name))] = value }
            return await api.respond(to: request, body: []).status.code
        }
        for (name, value) in [
            ("X-Slowlane-Dashboard", "1"), ("Origin", "http://localhost"), ("Sec-Fetch-Site", "same-origin"),
            ("User-Agent", "Mozilla/5.0"),
        ] {
            #expect(try await status(.post, "/slowlane/v1/reset", name, value) == 403)
            #expect(try await status(.get, "/slowlane/v1/profiles", name, value) == 200)
        }
        #expect(try await status(.post, "/slowlane/v1/reset") == 204)
    }
}
