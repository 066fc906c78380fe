import HTTPTypes
import NIOPosix
import Testing

@testable import ControlAPI

/// The authorization of requests.
@Suite struct RequestGuardTests {
    private func status(
        _ requestGuard: RequestGuard, _ method: HTTPRequest.Method = .get, host: String = "localhost",
        fields: HTTPFields = [:]
    ) -> Int? {
        let request = HTTPRequest(
            method: method, scheme: "http", authority: host, path: "/proxies", headerFields: fields)
        return requestGuard.rejection(of: request)?.status.code
    }

    @Test func foreignHostsAreRefused() {
        let requestGuard = RequestGuard(boundTo: "127.0.0.1", token: nil, allowedHosts: ["ci-host"])
        for host in ["localhost", "127.0.0.1:1", "127.8.8.8", "[::1]:8474", "ci-host:8474"] {
            #expect(status(requestGuard, host: host) == nil, "\(host)")
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"] {
            #expect(status(requestGuard, host: host) == 403, "\(host)")
        }
    }

    @Test func aServerOnEveryInterfaceAcceptsNumericHosts() {
        let requestGuard = RequestGuard(boundTo: "0.0.0.0", token: nil, allowedHosts: [])
        #expect(status(requestGuard, host: "10.0.0.1:8474") == nil && status(requestGuard, host: "[fe80::1]") == nil)
        #expect(status(requestGuard, host: "evil.example") == 403)
    }

    @Test func aBrowserUnderAnUnknownNameIsRefusedEvenIfAnyHostIsAllowed() {
        let requestGuard = RequestGuard(boundTo: "0.0.0.0", token: nil, allowedHosts: ["*"])
        #expect(status(requestGuard, host: "toxiproxy:8474") == nil)
        #expect(status(requestGuard, host: "rebound.example", fields: [.userAgent: "Mozilla/5.0"]) == 403)
        #expect(status(requestGuard, host: "localhost", fields: [.userAgent: "Mozilla/5.0"]) == nil)
    }

    @Test func changesFromOtherOriginsAreRefused() {
        let requestGuard = RequestGuard(boundTo: "127.0.0.1", token: nil, allowedHosts: [])
        let host = "127.0.0.1:8474"
        for origin in ["http://evil.example", "null", "http://localhost:3000", "https://\(host)"] {
            #expect(status(requestGuard, .post, host: host, fields: [.origin: origin]) == 403, "\(origin)")
            #expect(status(requestGuard, .get, host: host, fields: [.origin: origin]) == nil, "\(origin)")
        }
        #expect(status(requestGuard, .post, host: host, fields: [.origin: "http://\(host)"]) == nil)
    }

    @Test func changesOfPagesOfOtherSitesAreRefused() throws {
        let requestGuard = RequestGuard(boundTo: "127.0.0.1", token: nil, allowedHosts: [])
        let site = try #require(HTTPField.Name("Sec-Fetch-Site"))
        for (value, expected) in Self.sites {
            #expect(status(requestGuard, .put, fields: [site: value]) == expected, "\(value)")
            #expect(status(requestGuard, .get, fields: [site: value]) == nil, "\(value)")
        }
    }

    private static let sites: [(String, Int?)] = [
        ("same-origin", nil), ("none", nil), ("same-site", 403), ("cross-site", 403), ("unknown", 403),
    ]

    /// A reader holds one of the slots, and takes the proxies off the fast path.
    @Test(arguments: ["/slowlane/v1/events", "/slowlane/v1/%65vents?proxy=p", "/live"])
    func streamsOfEventsAreRefusedToPagesOfOtherOrigins(path: String) async throws {
        var limits = ServerLimits()
        limits.eventReadersMax = 1
        let pages = AdditionalPages { path, _ in path == "live" ? .events { nil } : nil }
        let api = API(
            seed: 1, limits: limits, version: "test", pages: pages, on: MultiThreadedEventLoopGroup.singleton)
        func response(_ name: String? = nil, _ value: String = "") async throws -> API.Response {
            var request = HTTPRequest(method: .get, scheme: "http", authority: "localhost:8474", path: path)
            if let name { request.headerFields[try #require(HTTPField.Name(name))] = value }
            return await api.respond(to: request, body: [])
        }
        for origin in ["http://evil.example", "null", "http://localhost:3000", "https://localhost:8474"] {
            #expect(try await response("Origin", origin).status == .forbidden, "\(origin)")
        }
        for (value, expected) in Self.sites {
            // Each response releases its slot, if it has one.
            let status = try await response("Sec-Fetch-Site", value).status.code
            #expect(status == expected ?? 200, "\(value)")
        }
        #expect(try await response("Origin", "http://localhost:8474").status == .ok)
        // The refused requests have taken no slot.
        #expect(try await response().stream != nil)
        await api.close()
    }

    @Test func theTokenIsRequired() {
        let requestGuard = RequestGuard(boundTo: "127.0.0.1", token: "secret", allowedHosts: [])
        #expect(status(requestGuard) == 401)
        for (value, expected) in [
            ("Bearer wrong!", 401), ("Bearer secret", nil), ("bearer secret", nil), ("secret", 401),
            ("Basic secret", 401),
        ] as [(String, Int?)] {
            #expect(status(requestGuard, fields: [.authorization: value]) == expected, "\(value)")
        }
    }
}
