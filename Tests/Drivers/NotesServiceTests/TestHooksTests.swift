import Foundation
import HTTPTypes
import NotesContract
import NotesServer
import NotesService
import TestSupport
import Testing
import Wire

/// Test hooks over HTTP and in Swift.
@Suite(.tags(.services), .timeLimit(.minutes(10))) struct TestHooksTests {
    private static func withServer(_ body: @escaping @Sendable (Int, Fixture) async throws -> Void) async throws {
        let fixture = try Fixture(testHooks: TestHooks())
        let server = try await NotesServer.start(fixture.service, host: "127.0.0.1", port: 0)
        do { try await body(server.port, fixture) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private static func ask(
        _ port: Int, _ method: String, _ path: String, _ body: String = ""
    ) async throws -> HTTPReply {
        try await blocking { try HTTPPeer(port: port).ask(method, path, body, ["Authorization: \(Fixture.ada)"]) }
    }

    private static func id(_ reply: HTTPReply) throws -> Int64 {
        guard case .integer(let id)? = JSONText.parse(Array(reply.body.utf8))?.object?["id"] else {
            throw HTTPReplyError(description: "no id in \(reply.body)")
        }
        return id
    }

    @Test func withoutHooksTheirPathsAre404() throws {
        #expect(try Fixture().send("GET", "/test-hooks").status == 404)
        #expect(try Fixture().send("PUT", "/test-hooks/clock", #"{"now":"2030-01-01T00:00:00Z"}"#).status == 404)
    }

    /// The write is committed and visible to others, but its response is not sent.
    @Test func aResponseIsHeldAfterItsWrite() async throws {
        try await Self.withServer { (port, _) async throws in
            let rule = try await Self.ask(
                port, "POST", "/test-hooks/rules", #"{"method":"POST","path":"/api/notes/","nth":1,"do":"hold"}"#)
            #expect(rule.status == 201)
            let id = try Self.id(rule)
            async let held = Self.ask(port, "POST", "/api/notes/", #"{"uuid":"\#(Fixture.n1)","title":"Milk"}"#)
            while try await Self.ask(port, "GET", "/api/notes/\(Fixture.n1)/").status == 404 {}
            // The second request is not affected.
            #expect(try await Self.ask(port, "POST", "/api/notes/", #"{"uuid":"\#(Fixture.n2)"}"#).status == 201)
            let state = try await Self.ask(port, "GET", "/test-hooks")
            #expect(state.body.contains(#""seen":2,"fired":1,"held":1"#), "\(state.body)")
            let released = try await Self.ask(port, "POST", "/test-hooks/rules/\(id)/release")
            #expect(released.body == #"{"released":1}"#)
            let response = try await held
            #expect(response.status == 201)
            #expect(response.body.contains("Milk"))
        }
    }

    @Test func aResponseIsDroppedAfterItsWrite() async throws {
        try await Self.withServer { (port, _) async throws in
            _ = try await Self.ask(port, "POST", "/test-hooks/rules", #"{"path":"/api/notes/*","nth":2,"do":"drop"}"#)
            #expect(try await Self.ask(port, "GET", "/api/notes/").status == 200)
            await #expect(throws: (any Error).self) {
                _ = try await Self.ask(port, "POST", "/api/notes/", #"{"uuid":"\#(Fixture.n1)"}"#)
            }
            #expect(try await Self.ask(port, "GET", "/api/notes/\(Fixture.n1)/").status == 200)
        }
    }

    @Test func aResponseIsForced() async throws {
        try await Self.withServer { (port, _) async throws in
            let rule = try await Self.ask(
                port, "POST", "/test-hooks/rules",
                #"{"method":"PUT","path":"/api/notes/*","do":"respond","status":503,"headers":{"Retry-After":"7"},"body":"no"}"#
            )
            let created = try await Self.ask(port, "POST", "/api/notes/", #"{"uuid":"\#(Fixture.n1)","title":"Milk"}"#)
            #expect(created.status == 201)
            for _ in 0..<2 {
                let put = try await Self.ask(port, "PUT", "/api/notes/\(Fixture.n1)/", "{}")
                #expect(put.status == 503)
                #expect(put.header("Retry-After") == "7")
                #expect(put.body == "no")
            }
            let id = try Self.id(rule)
            #expect(try await Self.ask(port, "DELETE", "/test-hooks/rules/\(id)").status == 204)
            #expect(try await Self.ask(port, "PUT", "/api/notes/\(Fixture.n1)/", "{}").status == 400)
        }
    }

    /// A forced response has the common header fields without a socket too.
    @Test func aForcedResponseHasTheMarker() throws {
        let testHooks = TestHooks()
        let fixture = try Fixture(testHooks: testHooks)
        testHooks.add(
            TestHooks.Rule(
                method: "GET", path: "/api/", nth: 2,
                action: .respond(status: 500, headers: [.contentType: "text/plain"], body: "no")))
        #expect((0..<3).map { _ in fixture.send("GET", "/api/").status } == [200, 500, 200])
        testHooks.add(
            TestHooks.Rule(method: nil, path: "/api/*", nth: nil, action: .respond(status: 502, headers: [:], body: ""))
        )
        let forced = fixture.send("GET", "/api/notes/")
        #expect(forced.status == 502)
        #expect(forced.field("Slowlane-Notes") == "1")
        testHooks.reset()
        #expect(fixture.send("GET", "/api/notes/").status == 200)
    }

    /// The names are in neither alphabetical nor reverse order.
    @Test func forcedHeadersKeepTheCallersOrder() throws {
        let names = ["X-M", "X-A", "X-Z", "X-C", "X-Y", "X-B", "X-K", "X-D", "X-W", "X-E"]
        func sent(_ response: Fixture.Response) -> [String] {
            response.head.headerFields.map(\.name.rawName).filter { $0.hasPrefix("X-") && $0.utf8.count == 3 }
        }
        let testHooks = TestHooks()
        let fixture = try Fixture(testHooks: testHooks)
        let members = names.map { "\"\($0)\":\"1\"" }.joined(separator: ",")
        let rule = #"{"path":"/api/","do":"respond","status":200,"headers":{\#(members)}}"#
        #expect(fixture.send("POST", "/test-hooks/rules", rule, as: nil).status == 201)
        #expect(sent(fixture.send("GET", "/api/")) == names)
        testHooks.reset()
        var headers = HTTPFields()
        for name in names { headers.append(HTTPField(name: try #require(HTTPField.Name(name)), value: "1")) }
        testHooks.add(
            TestHooks.Rule(
                method: nil, path: "/api/", nth: nil, action: .respond(status: 200, headers: headers, body: "")))
        #expect(sent(fixture.send("GET", "/api/")) == names)
    }

    @Test func theClockIsFixed() throws {
        let fixture = try Fixture(testHooks: TestHooks())
        #expect(fixture.send("PUT", "/test-hooks/clock", #"{"now":"2030-01-01T00:00:00.500Z"}"#, as: nil).status == 204)
        #expect(fixture.send("POST", "/api/notes/", "{}").note?.date == "2030-01-01T00:00:00.500Z")
        #expect(fixture.send("GET", "/test-hooks", as: nil).body.hasPrefix(#"{"clock":"2030-01-01T00:00:00.500Z""#))
        #expect(fixture.send("DELETE", "/test-hooks/clock", as: nil).status == 204)
        #expect(fixture.send("POST", "/api/notes/", "{}").note?.date == "2026-03-01T08:00:00.000Z")
    }

    @Test(arguments: [false, true]) func aSnapshotIsRestored(isFile: Bool) throws {
        let folder = try TemporaryFolder()
        let store = try NotesStore(path: isFile ? folder.path("notes.db") : nil)
        let fixture = try Fixture(store: store, testHooks: TestHooks())
        fixture.create()
        let key = ["Idempotency-Key": "a"]
        let before = fixture.send("GET", "/api/notes/").body
        let cursor = fixture.send("GET", "/api/notes-uuids/").field("Slowlane-Cursor") ?? ""
        #expect(fixture.send("POST", "/test-hooks/snapshots", as: nil).body == #"{"id":1}"#)
        fixture.create(Fixture.n2)
        fixture.send("POST", "/api/notes/", #"{"title":"later"}"#, with: key)
        #expect(fixture.send("POST", "/test-hooks/snapshots/1/restore", as: nil).status == 204)
        #expect(fixture.send("GET", "/api/notes/").body == before)
        // The cursor is from another history, and the operation is not stored in the snapshot.
        #expect(fixture.send("GET", "/api/notes-uuids/?since=\(cursor)").status == 410)
        #expect(fixture.send("POST", "/api/notes/", #"{"title":"later"}"#, with: key).status == 201)
        #expect(fixture.send("POST", "/test-hooks/snapshots/1/restore", as: nil).status == 204)
        #expect(fixture.send("GET", "/api/notes/").body == before)
        #expect(fixture.send("DELETE", "/test-hooks/snapshots/1", as: nil).status == 204)
        #expect(fixture.send("POST", "/test-hooks/snapshots/1/restore", as: nil).status == 404)
        if isFile {
            // The file on the disk is restored too.
            #expect(
                try Fixture(store: NotesStore(path: folder.path("notes.db"))).send("GET", "/api/notes/").body == before)
        }
    }

    @Test(arguments: [
        ("{", "detail"), ("{}", "path"), (#"{"path":"x"}"#, "path"), (#"{"path":"/","do":"burn"}"#, "do"),
        (#"{"path":"/","do":"hold","nth":0}"#, "nth"), (#"{"path":"/","do":"hold","often":1}"#, "often"),
        (#"{"path":"/","do":"respond"}"#, "status"), (#"{"path":"/","do":"respond","status":99}"#, "status"),
        (#"{"path":"/","do":"respond","status":200,"headers":{"a b":"c"}}"#, "headers"),
        (#"{"path":"/","method":1,"do":"hold"}"#, "method"),
    ]) func anInvalidRuleIsRejected(body: String, field: String) throws {
        let response = try Fixture(testHooks: TestHooks()).send("POST", "/test-hooks/rules", body)
        #expect(response.status == 400)
        #expect(response.body.contains("\"\(field)\":"), "\(response.body)")
    }

    /// A web page in a local browser, with its own origin or by DNS rebinding, must not reach the hooks.
    @Test func webPagesCannotUseTheHooks() throws {
        let service = try Fixture(testHooks: TestHooks()).service
        for (host, origin, status) in [
            ("127.0.0.1:8000", nil, 204), ("localhost", nil, 204), ("[::1]:80", nil, 204),
            ("evil.example:8000", nil, 403),
            ("localhost.evil.example", nil, 403), ("127.evil.example", nil, 403), ("127.0.0.1.example", nil, 403),
            ("127.9.9.9:80", nil, 204),
            ("localhost", "http://localhost", 403),
        ] {
            var request = HTTPRequest(method: .delete, scheme: "http", authority: host, path: "/test-hooks")
            request.headerFields[.origin] = origin
            #expect(service.respond(to: request, body: []).head.status.code == status, "\(host)")
        }
    }
}
