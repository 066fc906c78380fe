import Foundation
import HTTPTypes
import NotesContract
import NotesServer
import NotesService
import TestSupport
import Testing
import Wire

/// Hostile input gets a 4xx with a reason, or is served; never a 5xx.
@Suite(.tags(.services), .timeLimit(.minutes(10))) struct HostileInputTests {
    /// JSON values of every kind in every field, for every method with a body.
    @Test(arguments: APIContract.all) func noBodyCausesA500(contract: APIContract) throws {
        let fixture = try Fixture(contract)
        let revision = fixture.create()
        let values = [
            "null", "true", "1", "-1", "1e400", "9223372036854775808", "\"\"", "\"\\u0000\"", "\"\\uD800\"",
            "\"e\u{301}\"",
            "[]", "[[]]", "{}",
            String(repeating: "[", count: 60) + String(repeating: "[],", count: 2000) + "1"
                + String(repeating: "]", count: 60), "\"2026-03-01T08:00:00\"", "\"2026-02-30T08:00:00Z\"",
            "\"9999-12-31T23:59:59-14:00\"",
            "\"0-\"", "\"-\"", "\"1\"", "\"1-\"", "\"99999999999999999999-x\"", "\"9007199254740993-x\"",
            "\"\(String(repeating: "1-x", count: 200))\"", "\"\(String(repeating: "\u{1F9ED}", count: 300))\"",
        ]
        let fields = ["uuid", "revision", "date", "title", "text", "owner"]
        var seen: Set<Int> = []
        for field in fields {
            for value in values {
                for (method, path) in [
                    ("POST", "/api/notes/"), ("PUT", "/api/notes/\(Fixture.n1)/"),
                    ("PATCH", "/api/notes/\(Fixture.n1)/"),
                ] {
                    let own = field == "revision" || method == "POST" ? "" : #","revision":"\#(revision)""#
                    let body = #"{"\#(field)":\#(value)\#(own)}"#
                    let response = fixture.send(method, path, body)
                    #expect(response.status < 500, "\(contract): \(method) \(body): \(response.status)")
                    #expect(
                        response.status < 400 || JSONText.parse(Array(response.body.utf8))?.object?.isEmpty == false)
                    seen.insert(response.status)
                }
            }
        }
        #expect(seen.isSuperset(of: [200, 400, 409]), "\(seen)")
    }

    @Test(arguments: [
        "/api/notes/%/", "/api/notes/%ff/", "/api/notes/%00/", "/api/notes/../", "/api/notes//", "//api/notes/", "*",
        "/api/notes/" + String(repeating: "x", count: 20_000) + "/", "/api/notes/?%", "/api/notes-uuids/?since=%ff",
        "/api/notes-uuids/?limit=%31", "/test-hooks/rules/999999999999999999999", "http://h/api/notes/", "http://h", "",
    ]) func noPathCausesA500(path: String) throws {
        for contract in APIContract.all {
            let fixture = try Fixture(contract, testHooks: TestHooks())
            for method in ["GET", "HEAD", "PUT", "DELETE", "POST", "OPTIONS", "TRACE", "X"] {
                let response = fixture.send(method, path)
                #expect(response.status < 500, "\(contract): \(method) \(path)")
            }
        }
    }

    @Test func noHeaderCausesA500() throws {
        let fixture = try Fixture()
        fixture.create()
        let values = [
            "", "\"", "W/", "*", ",", ",,,", "\"\"", "W/\"", String(repeating: "\"x\",", count: 5000), "q=", ";", "/",
        ]
        for name in [
            "If-None-Match", "If-Match", "If-Modified-Since", "Accept", "Cookie", "Content-Type", "Idempotency-Key",
            "Origin",
            "X-CSRFToken",
        ] {
            for value in values {
                for method in ["GET", "PUT", "POST"] {
                    let path = method == "POST" ? "/api/notes/" : "/api/notes/\(Fixture.n1)/"
                    let response = fixture.send(method, path, "{}", with: [name: value])
                    #expect(response.status < 500, "\(method) \(name): \(value.prefix(20)): \(response.status)")
                }
            }
        }
        for credentials in ["", "Basic", "Basic ", "Basic \u{FF}", "Bearer", "Bearer ", "Basic OjpvOg==", "Digest x"] {
            #expect(fixture.send("GET", "/api/", as: credentials).status == 403)
        }
    }

    /// Comparison by Unicode's canonical equivalence would take minutes for each of these requests.
    @Test(arguments: APIContract.all) func combiningMarksTakeLinearTime(contract: APIContract) throws {
        let fixture = try Fixture(contract, testHooks: TestHooks())
        let revision = fixture.create()
        let marks = CombiningMarks.long
        let form = ["Content-Type": "application/x-www-form-urlencoded"]
        let multipart = ["Content-Type": "multipart/form-data; boundary=b"]
        let part = "--b\r\nContent-Disposition: form-data; "
        let note = "/api/notes/\(Fixture.n1)/"
        let clock = ContinuousClock()
        let start = clock.now
        var statuses: [Int] = []
        for (method, path, body, fields) in [
            ("POST", "/api/notes/", "{\"\(marks)\":1,\"\(marks)x\":1}", [:]),
            ("POST", "/api/notes/", "{\"uuid\":\"\(marks)\"}", [:]),
            ("PUT", note, "{\"revision\":\"\(marks)\"}", [:]),
            ("PUT", note, "{\"revision\":\"\(revision)\",\"date\":\"\(marks)\"}", [:]),
            ("PATCH", note, "{\"revision\":\"1-\(marks)\",\"title\":\"\(marks)\"}", [:]),
            ("POST", "/api/notes/", "\(marks)=1&\(marks)x=1", form),
            ("POST", "/api/notes/", "\(part)name=\"\(marks)\"\r\n\r\n1\r\n--b--", multipart),
            ("POST", "/api/notes/", "\(part)\(marks)=\"a\"; name=x\r\n\(marks): x\r\n\r\n\(marks)\r\n--b--", multipart),
            ("POST", "/accounts/login/", "username=\(marks)&password=\(marks)", form),
            ("POST", "/accounts/login/", "\(marks)=x&username=ada\(marks)&password=secret", form),
            ("POST", "/test-hooks/rules", "{\"\(marks)\":1}", [:]),
            ("POST", "/test-hooks/rules", "{\"path\":\"/\(marks)\",\"do\":\"\(marks)\"}", [:]),
            ("PUT", "/test-hooks/clock", "{\"now\":\"\(marks)\"}", [:]),
            ("POST", "/api/tokens/refresh/", "{\"refresh_token\":\"\(marks)\",\"\(marks)\":1}", [:]),
        ] {
            statuses.append(fixture.send(method, path, body, with: fields).status)
        }
        #expect(statuses.allSatisfy { $0 < 500 })
        #expect(clock.now - start < .seconds(60))
    }

    /// Canonically equivalent names with different bytes are different users.
    @Test func userNamesAreComparedByBytes() throws {
        let service = NotesService(
            store: try NotesStore(path: nil, contract: .compat), users: ["\u{E9}": "one"])
        for (name, password, status) in [("\u{E9}", "one", 200), ("e\u{301}", "one", 403), ("\u{E9}", "two", 403)] {
            var request = HTTPRequest(method: .get, scheme: "http", authority: "h", path: "/api/notes/")
            request.headerFields[.authorization] = "Basic \(Data("\(name):\(password)".utf8).base64EncodedString())"
            #expect(service.respond(to: request, body: []).head.status.code == status)
        }
    }

    /// An unauthenticated client cannot make the server read large bodies.
    @Test func unauthenticatedBodiesAreLimited() async throws {
        try await Self.withServer { port in
            try await blocking {
                let long = String(repeating: "x", count: 9000)
                let refused = try HTTPPeer(port: port).ask("POST", "/api/notes/", long)
                #expect(refused.status == 403)
                #expect(refused.header("Connection") == "close")
                let form = ["Content-Type: application/x-www-form-urlencoded"]
                #expect(try HTTPPeer(port: port).ask("POST", "/accounts/login/", long, form).status == 413)
                #expect(try HTTPPeer(port: port).ask("POST", "/accounts/login/", "username=a", form).status == 403)
                let chunked =
                    "POST /accounts/login/ HTTP/1.1\r\nHost: h\r\n\(form[0])\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "2328\r\n\(long)\r\n0\r\n\r\n"
                #expect(try HTTPPeer(port: port).raw(chunked).status == 413)
                let known = ["Authorization: \(Fixture.ada)"]
                #expect(
                    try HTTPPeer(port: port).ask("POST", "/api/notes/", "{\"text\":\"\(long)\"}", known).status == 201)
            }
        }
    }

    private static func withServer(_ body: @escaping @Sendable (Int) async throws -> Void) async throws {
        let server = try await NotesServer.start(Fixture().service, host: "127.0.0.1", port: 0)
        do { try await body(server.port) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    @Test func bodiesOverTheLimitAreRejected() async throws {
        try await Self.withServer { port in
            try await blocking {
                let body = #"{"text":"\#(String(repeating: "x", count: 2_000_000))"}"#
                let fields = ["Authorization: \(Fixture.ada)"]
                let tooLong = try HTTPPeer(port: port).ask("POST", "/api/notes/", body, fields)
                #expect(tooLong.status == 413)
                // The limit also applies to chunked bodies.
                let chunks = String(repeating: "10000\r\n\(String(repeating: "x", count: 65_536))\r\n", count: 20)
                let chunked =
                    "POST /api/notes/ HTTP/1.1\r\nHost: h\r\nAuthorization: \(Fixture.ada)\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n" + chunks + "0\r\n\r\n"
                let tooLongChunked = try HTTPPeer(port: port).raw(chunked)
                #expect(tooLongChunked.status == 413)
                let list = try HTTPPeer(port: port).ask("GET", "/api/notes/", "", fields)
                #expect(list.body == "[]")
            }
        }
    }

    /// Even the response to malformed HTTP carries the marker.
    @Test func malformedHTTPGetsA400WithTheMarker() async throws {
        try await Self.withServer { port in
            try await blocking {
                let long = String(repeating: "x", count: 40_000)
                for text in [
                    "GARBAGE\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n", "GET / HTTP/1.1\r\nX: \(long)\r\n\r\n",
                ] {
                    let reply = try HTTPPeer(port: port).raw(text)
                    #expect(reply.status == 400)
                    #expect(reply.header("Slowlane-Notes") == "1")
                }
                let peer = HTTPPeer(port: port)
                let head =
                    "POST /api/notes/ HTTP/1.1\r\nHost: h\r\nAuthorization: \(Fixture.ada)\r\nExpect: 100-continue\r\n"
                #expect(try peer.raw(head + "Content-Length: 2\r\n\r\n", isHead: true).status == 100)
                #expect(try peer.raw("{}").status == 201)
                #expect(try HTTPPeer(port: port).raw(head + "Content-Length: 2000000\r\n\r\n").status == 413)
            }
        }
    }

    @Test func aHEADHasTheContentLengthOfAGET() async throws {
        try await Self.withServer { port in
            try await blocking {
                let fields = ["Authorization: \(Fixture.ada)"]
                let peer = HTTPPeer(port: port)
                _ = try peer.ask("POST", "/api/notes/", #"{"uuid":"\#(Fixture.n1)","title":"\u{E9}"}"#, fields)
                for path in ["/api/", "/api/notes/", "/api/notes/\(Fixture.n1)/", "/api/notes-uuids/"] {
                    let get = try peer.ask("GET", path, "", fields)
                    let head = try peer.ask("HEAD", path, "", fields)
                    for name in ["Content-Length", "ETag", "Slowlane-Cursor", "Content-Type"] {
                        #expect(head.header(name) == get.header(name), "\(path) \(name)")
                    }
                    #expect(head.header("Content-Length") == String(get.body.utf8.count))
                }
            }
        }
    }

    /// The response to HEAD has no body, even for long lists, so that the next response on the connection can be
    /// parsed.
    @Test(arguments: APIContract.all) func everyResourceSupportsHEADAndHTTP10(contract: APIContract) async throws {
        let fixture = try Fixture(contract, testHooks: TestHooks())
        for number in 0..<1200 {
            fixture.create(
                "00000000-0000-4000-8000-00000000\(1000 + number)", title: String(repeating: "t", count: 100))
        }
        let server = try await NotesServer.start(fixture.service, host: "127.0.0.1", port: 0)
        let port = server.port
        try await blocking {
            let fields = ["Authorization: \(Fixture.ada)"]
            let note = "/api/notes/00000000-0000-4000-8000-000000001000/"
            for path in [
                "/api/", "/api/notes/", note, note + "pin/", note + "attachments/", note + "attachments/a",
                "/api/notes-uuids/", "/api/notes-uuids/?limit=1000",
                "/notes/",
                "/openapi.json", "/accounts/login/", "/accounts/logout/", "/api/tokens/", "/api/tokens/refresh/",
                "/test-hooks/",
                "/none", "/api/notes", "*",
            ] {
                let peer = HTTPPeer(port: port)
                let head = try peer.ask("HEAD", path, "", fields)
                // The GET uses the same connection.
                let get = try peer.ask("GET", path, "", fields)
                #expect(head.status == get.status || path == "/test-hooks/", "\(path): \(head.status) \(get.status)")
                #expect(try peer.ask("GET", "/api/", "", fields).status == 200, "\(path)")
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET \(path) HTTP/1.0\r\nHost: 127.0.0.1:\(port)\r\n\(fields[0])\r\n\r\n".utf8))
                let old = String(decoding: try socket.receiveToEnd(), as: UTF8.self)
                #expect(old.hasPrefix("HTTP/1.1 \(get.status) ") && !old.contains("Transfer-Encoding"), "\(path)")
                let body = old.range(of: "\r\n\r\n").map { String(old[$0.upperBound...]) }
                #expect(path == "/test-hooks/" || body?.utf8.count == get.body.utf8.count, "\(path)")
            }
        }
        await server.stop()
    }

    /// ApacheBench speaks HTTP/1.0, with and without keep-alive.
    @Test func apacheBenchGetsCompleteResponses() async throws {
        let fixture = try Fixture()
        fixture.create()
        let server = try await NotesServer.start(fixture.service, host: "127.0.0.1", port: 0)
        for path in ["/api/notes/", "/api/notes-uuids/"] {
            try await ApacheBench.expectResponses(
                "http://127.0.0.1:\(server.port)\(path)", ["-A", "ada:secret"], requests: 200)
        }
        for number in 0..<1200 {
            fixture.create(
                "00000000-0000-4000-8000-00000000\(1000 + number)", title: String(repeating: "t", count: 100))
        }
        // A long list has no Content-Length.
        try await ApacheBench.expectResponses(
            "http://127.0.0.1:\(server.port)/api/notes/", ["-A", "ada:secret"], requests: 20)
        await server.stop()
    }

    /// An upload that ends early writes nothing.
    @Test func truncatedUploadsWriteNothing() async throws {
        try await Self.withServer { port in
            try await blocking {
                let body = #"{"title":"Milk"}"#
                let head =
                    "POST /api/notes/ HTTP/1.1\r\nHost: h\r\nAuthorization: \(Fixture.ada)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n"
                for length in 0..<body.utf8.count {
                    let socket = try TestSocket.connect(port: port)
                    try socket.send(Array((head + body.prefix(length)).utf8))
                    if length % 2 == 0 { socket.finish() } else { socket.reset() }
                }
                let list = try HTTPPeer(port: port).ask("GET", "/api/notes/", "", ["Authorization: \(Fixture.ada)"])
                #expect(list.body == "[]")
            }
        }
    }

    /// Other clients are served while 1000 uploads make almost no progress.
    @Test func aThousandSlowUploadsDoNotDelayOthers() async throws {
        try await Self.withServer { port in
            try await blocking {
                let fields = ["Authorization: \(Fixture.ada)"]
                let head =
                    "POST /api/notes/ HTTP/1.1\r\nHost: h\r\nAuthorization: \(Fixture.ada)\r\n"
                    + "Content-Length: 1000000\r\n\r\n{"
                let slow = try (0..<1000).map { _ in
                    let socket = try TestSocket.connect(port: port)
                    try socket.send(Array(head.utf8))
                    return socket
                }
                for socket in slow { try socket.send([32]) }
                let peer = HTTPPeer(port: port)
                for number in 0..<20 {
                    #expect(try peer.ask("POST", "/api/notes/", #"{"title":"\#(number)"}"#, fields).status == 201)
                }
                #expect(try peer.ask("GET", "/api/notes/", "", fields).status == 200)
                withExtendedLifetime(slow) {}
            }
        }
    }

    /// The memory for all bodies is limited; further bodies get 503.
    @Test func bodiesOverTheMemoryBudgetGet503() async throws {
        try await Self.withServer { port in
            try await blocking {
                let head =
                    "POST /api/notes/ HTTP/1.1\r\nHost: h\r\nAuthorization: \(Fixture.ada)\r\n"
                    + "Content-Length: 1000000\r\n\r\n"
                let most = [UInt8](repeating: 32, count: 999_000)
                // A rejected connection may close while the client still sends.
                var open = try (0..<80).map { _ in
                    let socket = try TestSocket.connect(port: port)
                    try socket.send(Array(head.utf8))
                    try? socket.send(most)
                    return socket
                }
                var readable: [TestSocket] = []
                let deadline = ContinuousClock.now + .seconds(60)
                while readable.count < 80 - 67 && ContinuousClock.now < deadline {
                    readable = open.filter { $0.isReadable(within: 100) }
                }
                #expect(readable.count >= 80 - 67)
                let responses = readable.compactMap { try? $0.receive() }.filter { !$0.isEmpty }
                #expect(!responses.isEmpty)
                for response in responses {
                    #expect(String(decoding: response.prefix(12), as: UTF8.self) == "HTTP/1.1 503")
                }
                for socket in open { socket.reset() }
                open = []
                // The memory is released when the clients disconnect.
                let peer = HTTPPeer(port: port)
                var status = 0
                for _ in 0..<100 where status != 201 {
                    status = try peer.ask("POST", "/api/notes/", "{}", ["Authorization: \(Fixture.ada)"]).status
                }
                #expect(status == 201)
            }
        }
    }
}
