import HTTPTypes
import LinkModel
import Testing
import Wire

@testable import ControlAPI

/// The forms of a link in requests.
@Suite(.timeLimit(.minutes(20))) struct LinkSettingTests {
    let call = APICall()
    let path = "/slowlane/v1/proxies/p/link"

    @Test(arguments: [
        (#"{"profile":"edge"}"#, 400),
        (#"{"netem":{"down":"delay 70ms rate 1mbit","up":""}}"#, 70),
        (#"{"conditions":{"down":{"delay":"80 ms","rate":"500 kbit/s"},"up":{}}}"#, 80),
        (#"{"conditions":{"down":{"delay_ms":90,"rate_bps":500000,"loss_percent":1.5},"up":{}}}"#, 90),
    ]) func aLinkHasSeveralForms(_ body: String, _ delay: Int64) async throws {
        try await call.proxy()
        let response = try await call("PUT", path, body)
        #expect(response.status == .ok && response.warnings.isEmpty, "\(response.body)")
        #expect(response.object?["down"]?.object?["delay_ms"] == .integer(delay), "\(response.body)")
        let cleared = try await call("DELETE", path)
        #expect(cleared.object?["down"]?.object?["delay_ms"] == .integer(0))
        #expect(cleared.object?["down"]?.object?["rate_bps"] == .null)
    }

    @Test func conditionsOfAResponseAreValidInARequest() async throws {
        try await call.proxy()
        let first = try #require(
            try await call("PUT", path, #"{"netem":{"down":"delay 70ms rate 1mbit loss 1.5%","up":"delay 3ms"}}"#)
                .object)
        var conditions = JSONObject()
        for name in ["down", "up", "dns_delay_ms"] { conditions[name] = first[name] }
        _ = try await call("DELETE", path)
        let second = try await call("PUT", path, JSONValue.object(["conditions": .object(conditions)]).json)
        #expect(second.object == first, "\(second.body)")
    }

    @Test(arguments: [
        "{}", #"{"profile":"edg"}"#, #"{"profile":"edge","timeline":"subway"}"#, #"{"profile":"./x.yaml"}"#,
        #"{"timeline":"0s: /etc/passwd"}"#, #"{"netem":{"down":"delay"}}"#, #"{"conditions":{"down":7}}"#,
        #"{"conditions":{"down":{"trace":"/etc/passwd"},"up":{}}}"#, #"{"conditions":null}"#, "[]",
        #"{"conditions":{"down":{"delay_ms":1,"delay":"1 ms"},"up":{}}}"#,
        #"{"profile":"edge","start":"2026-03-01T12:00:00Z"}"#, #"{"timeline":"subway","start":"noon"}"#,
        #"{"timeline":"subway","start":7}"#, #"{"conditions":{"down":{"delay_ms":"1 ms"},"up":{}}}"#,
        #"{"conditions":{"down":{"rate":5},"up":{}}}"#,
    ]) func anInvalidLinkIsRefused(_ body: String) async throws {
        try await call.proxy()
        let response = try await call("PUT", path, body)
        #expect(response.status == .badRequest && response.error != nil, "\(response.body)")
        #expect(!response.body.contains("root:"))
    }

    /// The start of a request goes before that of the server, which also applies to definitions of proxies.
    @Test func aTimelineHasAnAbsoluteStart() async throws {
        let call = APICall(timelineStart: TimelineStart("2026-03-01T12:00:00Z"))
        try await call.proxy("p", #","link":{"timeline":"subway"}"#)
        func start() async throws -> String? { try await call("GET", path).object?["start"]?.text }
        #expect(try await start() == "2026-03-01T12:00:00Z")
        let own = try await call("PUT", path, #"{"timeline":"subway","start":"2026-04-01T12:00:00+02:00"}"#)
        #expect(own.warnings.isEmpty && own.object?["start"]?.text == "2026-04-01T12:00:00+02:00", "\(own.body)")
        _ = try await call("PUT", path, #"{"profile":"edge"}"#)
        #expect(try await start() == nil)
        let invalid = try await call("PUT", path, #"{"timeline":"subway","start":"noon"}"#)
        #expect(invalid.error?.contains("start 'noon' must be a time of RFC 3339") == true, "\(invalid.body)")
    }

    @Test func aMisspelledFormGetsASuggestion() async throws {
        try await call.proxy()
        #expect(
            try await call("PUT", path, #"{"profil":"edge"}"#).error
                == "bad request body: expected one of profile, timeline, netem, conditions, got 'profil'; did you mean 'profile'?"
        )
    }

    @Test func anUnknownProxyIsNotFound() async throws {
        #expect(try await call("PUT", path, #"{"profile":"edge"}"#).status == .notFound)
    }
}
