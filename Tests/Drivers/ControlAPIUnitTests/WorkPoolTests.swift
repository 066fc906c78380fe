import Dispatch
import HTTPTypes
import NIOPosix
import Synchronization
import TestSupport
import Testing
import Wire

@testable import ControlAPI

/// Work whose time grows with a request or a response, off the threads on which other requests run.
@Suite(.timeLimit(.minutes(20))) struct WorkPoolTests {
    /// A large call: its method, its path and its body.
    struct LargeCall: CustomTestStringConvertible, Sendable {
        let method: String
        let path: String
        var body = ""

        var testDescription: String { "\(method) \(path)" }

        /// Adds a field to a body so that it is large.
        static func padded(_ fields: String) -> String {
            "{\"padding\":\"\(String(repeating: "x", count: WorkPool.inlineBytesMax))\"\(fields)}"
        }
    }

    private static let proxy = "/slowlane/v1/proxies/p"

    static let largeCalls = [
        LargeCall(method: "PUT", path: "\(proxy)/link", body: LargeCall.padded(#","profile":"edge""#)),
        LargeCall(method: "PATCH", path: "\(proxy)/timeline", body: LargeCall.padded(#","paused":true"#)),
        LargeCall(method: "PUT", path: "\(proxy)/outage", body: LargeCall.padded(#","up":true"#)),
        LargeCall(method: "PUT", path: "\(proxy)/seed", body: LargeCall.padded(#","seed":5"#)),
        LargeCall(
            method: "POST", path: "\(proxy)/faults",
            body: LargeCall.padded(#","rule":"PUT * before-request-end reset""#)),
        LargeCall(method: "POST", path: "/slowlane/v1/recording", body: LargeCall.padded(#","state":"off""#)),
        LargeCall(
            method: "POST", path: "/proxies",
            body: LargeCall.padded(#","name":"q","upstream":"127.0.0.1:1","enabled":false"#)),
        LargeCall(method: "PATCH", path: "/proxies/p", body: LargeCall.padded(#","enabled":false"#)),
        LargeCall(method: "POST", path: "/proxies/p/toxics", body: LargeCall.padded(#","type":"noop""#)),
        LargeCall(method: "PATCH", path: "/proxies/p/toxics/t", body: LargeCall.padded("")),
        LargeCall(
            method: "POST", path: "/populate",
            body: "[\(LargeCall.padded(#","name":"q","upstream":"127.0.0.1:1","enabled":false"#))]"),
        LargeCall(method: "GET", path: "/proxies"),
        LargeCall(method: "GET", path: "/slowlane/v1/metrics"),
        LargeCall(method: "GET", path: "\(proxy)/faults"),
        LargeCall(method: "GET", path: "/slowlane/v1/recording"),
        LargeCall(method: "GET", path: "/slowlane/v1/events"),
    ]

    /// Occupies every thread of a pool until it is released.
    private final class Blockade: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        private let pool: WorkPool

        init(_ pool: WorkPool) async throws {
            self.pool = pool
            for _ in 0..<pool.threadCount {
                Task { [semaphore] in try await pool.run(bytes: .max) { semaphore.wait() } }
            }
            while pool.pendingCount < pool.threadCount { await Task.yield() }
        }

        func release() { for _ in 0..<pool.threadCount { semaphore.signal() } }
    }

    /// An API with much to list, and a small proxy `s`.
    private static func api() async throws -> APICall {
        let call = APICall()
        for number in 0..<10 { try await call.proxy("proxy\(number)") }
        try await call.proxy("p", #","toxics":[{"type":"noop","name":"t"}]"#)
        try await call.proxy("s")
        _ = try await call("POST", "/slowlane/v1/recording", #"{"state":"on"}"#)
        for number in 0..<10 {
            let fault = try await call("POST", "\(proxy)/faults", #"{"rule":"PUT * before-request-end reset"}"#)
            #expect(fault.status == .created, "\(number)")
        }
        return call
    }

    @Test(arguments: largeCalls) func otherCallsAreServedWhileALargeOneWaitsForTheThreadsOfThePool(
        large: LargeCall
    ) async throws {
        let call = try await Self.api()
        let work = call.api.work
        let blockade = try await Blockade(work)
        let isDone = Atomic(false)
        async let response: API.Response = {
            var response = try await call(large.method, large.path, large.body)
            if let stream = response.stream { response.body = await stream() ?? "" }
            isDone.store(true, ordering: .sequentiallyConsistent)
            return response
        }()
        // A call that is handled elsewhere ends without waiting.
        while work.pendingCount == work.threadCount, !isDone.load(ordering: .sequentiallyConsistent) {
            await Task.yield()
        }
        #expect(try await call("GET", "/version").status == .ok)
        #expect(try await call("GET", "/proxies/p").status == .ok)
        for (method, path, body) in [
            ("PUT", "link", #"{"profile":"3g"}"#), ("PUT", "seed", #"{"seed":1}"#), ("DELETE", "outage", ""),
            ("GET", "faults", ""),
        ] {
            #expect(try await call(method, "/slowlane/v1/proxies/s/\(path)", body).status == .ok, "\(path)")
        }
        #expect(work.pendingCount == work.threadCount + 1)
        let wasDone = isDone.load(ordering: .sequentiallyConsistent)
        #expect(!wasDone)
        blockade.release()
        let result = try await response
        let expected: Set<HTTPResponse.Status> =
            large.path.hasSuffix("/timeline") ? [.conflict] : [.ok, .created]
        #expect(expected.contains(result.status) && !result.body.isEmpty, "\(result.status) \(result.body.prefix(200))")
        await call.api.close()
    }

    @Test func aCallThatIsCancelledWhileItWaitsChangesNothing() async throws {
        let call = try await Self.api()
        let work = call.api.work
        _ = try await call("PUT", "\(Self.proxy)/seed", #"{"seed":1}"#)
        let blockade = try await Blockade(work)
        let body = LargeCall.padded(#","seed":2"#)
        let calls = (0..<8).map { _ in Task { try await call("PUT", "\(Self.proxy)/seed", body) } }
        while work.pendingCount < work.threadCount + calls.count { await Task.yield() }
        for call in calls { call.cancel() }
        blockade.release()
        for call in calls { #expect(try await call.value.status == .serviceUnavailable) }
        #expect(work.pendingCount == 0)
        #expect(try await call("GET", "\(Self.proxy)/seed").object?["seed"] == .integer(1))
        #expect(try await call("PUT", "\(Self.proxy)/seed", body).object?["seed"] == .integer(2))
        await call.api.close()
    }

    @Test func theServerClosesWhileALargeCallWaits() async throws {
        let call = try await Self.api()
        let work = call.api.work
        let blockade = try await Blockade(work)
        let body = "[\(LargeCall.padded(#","name":"q","listen":"127.0.0.1:0","upstream":"127.0.0.1:1""#))]"
        let large = Task { try await call("POST", "/populate", body) }
        while work.pendingCount == work.threadCount { await Task.yield() }
        await call.api.close()
        blockade.release()
        let response = try await large.value
        #expect(response.status == .internalServerError || response.status == .serviceUnavailable)
    }

    /// Comparing each name with all others would take minutes.
    @Test func tensOfThousandsOfToxicsAreReadInLinearTime() async throws {
        var limits = ServerLimits()
        limits.toxicsMax = 20_000
        let call = APICall(limits: limits)
        let toxics = (0..<10_000).map { #"{"type":"noop","name":"\#($0)"}"# }.joined(separator: ",")
        try await call.proxy("p", #","toxics":[\#(toxics)]"#)
        #expect(try await call("GET", "/proxies/p").object?["toxics"]?.array.count == 10_000)
        let twice = #"{"name":"q","upstream":"a:1","enabled":false,"toxics":[\#(toxics),{"type":"noop","name":"7"}]}"#
        #expect(try await call("POST", "/proxies", twice).error == "toxic already exists")
    }

    // MARK: Unknown fields

    @Test(arguments: randomSeeds(20)) func namesMatchAsTheirLowercaseForms(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let names = ["link", "position_ms", "k", "rate", "upstream", "kk2"]
        let letters: [String] = [
            "k", "K", "\u{212A}", "l", "i", "\u{130}", "n", "s", "\u{17F}", "S", "_", "2", "@", "`", "[", "é",
            "e\u{301}",
        ]
        for _ in 0..<300 {
            let name = names[Int.random(in: 0..<names.count, using: &random)]
            var key = ""
            for letter in name {
                switch Int.random(in: 0..<12, using: &random) {
                case 0: key += letters[Int.random(in: 0..<letters.count, using: &random)]
                case 1...5: key += letter.uppercased()
                case 6: key += letter == "k" ? "\u{212A}" : String(letter)
                default: key += String(letter)
                }
            }
            #expect(JSONFields.matches(key, name) == key.lowercased().hasSameBytes(as: name), "\(key) \(name)")
        }
    }

    @Test(arguments: randomSeeds(20)) func theFirstUnknownNamesInByteOrderAreFound(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var object = JSONObject()
        for _ in 0..<Int.random(in: 0...60, using: &random) {
            object[
                "\(["a", "B", "Seed", "é", "z"].randomElement(using: &random) ?? "")\(Int.random(in: 0..<9, using: &random))"
            ] = 1
        }
        object["SEED"] = 1
        let fields = try JSONFields(.object(object), "the body")
        let all = object.keys.filter { $0 != "SEED" }
        for limit in [0, 1, 5, 9, 100] {
            #expect(fields.names(except: ["seed"], limit: limit) == Array(all.prefix(limit)))
        }
    }
}
