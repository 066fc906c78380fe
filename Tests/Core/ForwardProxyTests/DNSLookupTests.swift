import Determinism
import Testing

@testable import ForwardProxy

/// A look-up in virtual time.
@Suite struct DNSLookupTests {
    /// A look-up with the queries that it has sent, and the time.
    private struct Scene {
        var lookup: DNSLookup
        var now = Instant.start
        var queries: [DNSLookup.Query] = []
        var closed: Set<Int> = []
        var outcome: DNSLookup.Outcome?

        init(_ host: String = "api.test", servers: Int = 1, seed: UInt64 = 1, _ options: String = "") {
            let text = (0..<servers).map { "nameserver 192.0.2.\($0 + 1)\n" }.joined() + options
            lookup = DNSLookup(
                host, ResolverConfiguration(Array(text.utf8)), at: .start, deadline: .start + .seconds(60),
                ids: RandomStream(seed: seed, "dns"))
            take()
        }

        mutating func take() {
            while let action = lookup.takeAction() {
                #expect(outcome == nil, "an action after the end")
                switch action {
                case .send(let query): queries.append(query)
                case .close(let number): closed.insert(number)
                case .finish(let outcome): self.outcome = outcome
                }
            }
        }

        /// The queries in the form `TIME in s, SERVER, TYPE, NAME`.
        static func text(_ query: DNSLookup.Query) -> String {
            let question = DNSQuery(query.message)
            let server = if case .server(let server) = query.source { "\(server.address.bytes[3])" } else { "system" }
            return "\(server) \(question?.type == .ipv4 ? "A" : "AAAA") \(question?.name ?? "")"
        }

        /// Takes the texts of the queries since the last call.
        mutating func sent() -> [String] {
            defer { taken = queries.count }
            return queries.dropFirst(taken).map(Self.text)
        }
        private var taken = 0

        mutating func wait(_ seconds: Int64) {
            now = now + .seconds(seconds)
            lookup.advance(to: now)
            take()
        }

        /// Responds to the newest query that is still open for each text (`1 A api.test`).
        mutating func respond(_ text: String, _ response: DNSResponse) {
            guard let query = queries.last(where: { Self.text($0) == text }) else {
                return #expect(Bool(false), "\(text)")
            }
            respond(query, response.bytes(to: query.message))
        }

        mutating func respond(_ query: DNSLookup.Query, _ bytes: [UInt8], from source: DNSLookup.Source? = nil) {
            lookup.receive(bytes, from: source ?? query.source, query: query.number, at: now)
            take()
        }

        mutating func fail(_ text: String) {
            guard let query = queries.last(where: { Self.text($0) == text }) else {
                return #expect(Bool(false), "\(text)")
            }
            lookup.recordFailure(of: query.number, at: now)
            take()
        }
    }

    private static let version4 = DNSResponse(answers: [
        .address("api.test", "192.0.2.7", timeToLive: 30), .address("api.test", "192.0.2.8", timeToLive: 40),
    ])
    private static let version6 = DNSResponse(answers: [.address("api.test", "2001:db8::7", timeToLive: 20)])
    private static let none = DNSResponse(authorities: [.authority("test", timeToLive: 50, minimum: 60)])
    private static let missing = DNSResponse(code: 3, authorities: [.authority("test", timeToLive: 40, minimum: 60)])
    private static let failed = DNSResponse(code: 2)

    @Test func bothTypesAreAskedAtOnceAndAwaited() {
        var scene = Scene()
        #expect(scene.sent() == ["1 A api.test", "1 AAAA api.test"])
        #expect(scene.lookup.nextDeadline == .start + .seconds(5))
        scene.respond("1 A api.test", Self.version4)
        #expect(scene.outcome == nil && scene.closed == [1])
        scene.respond("1 AAAA api.test", Self.version6)
        #expect(scene.outcome?.addresses.map(\.description) == ["2001:db8::7", "192.0.2.7", "192.0.2.8"])
        #expect(scene.outcome?.timeToLive == .seconds(20) && scene.outcome?.failure == nil)
        #expect(scene.closed == [1, 2] && scene.lookup.nextDeadline == nil)
    }

    @Test func aNameWithOneTypeHasTheTimeToLiveOfIt() {
        var scene = Scene()
        scene.respond("1 AAAA api.test", DNSResponse())
        scene.respond("1 A api.test", Self.version4)
        #expect(scene.outcome?.addresses.count == 2 && scene.outcome?.timeToLive == .seconds(30))
    }

    @Test func aQueryWithoutAResponseIsRepeated() {
        var scene = Scene()
        scene.respond("1 A api.test", Self.version4)
        _ = scene.sent()
        scene.wait(4)
        #expect(scene.sent().isEmpty)
        scene.wait(1)
        #expect(scene.sent() == ["1 AAAA api.test"])
        scene.wait(5)
        // glibc, too, uses what it has.
        #expect(scene.sent().isEmpty && scene.outcome?.addresses.count == 2)
    }

    @Test func theResponseToAnEarlierQueryCounts() {
        var scene = Scene()
        let first = scene.queries[0]
        scene.wait(5)
        scene.respond(first, Self.version4.bytes(to: first.message))
        scene.respond("1 AAAA api.test", Self.none)
        #expect(scene.outcome?.addresses.count == 2 && scene.closed == [1, 2, 3, 4])
    }

    @Test func aQuestionKeepsTheNewestQueriesOpen() {
        var scene = Scene(servers: 3, "options timeout:1 attempts:5")
        for second in 0..<14 {
            #expect(scene.queries.count - scene.closed.count == (second == 0 ? 2 : 2 * DNSLookup.openMax))
            scene.wait(1)
        }
        scene.respond("3 A api.test", Self.version4)
        scene.respond("3 AAAA api.test", Self.none)
        #expect(scene.outcome?.addresses.count == 2 && scene.closed.count == scene.queries.count)
    }

    @Test func serversAreAskedInTurn() {
        var scene = Scene(servers: 2, "options timeout:2 attempts:2")
        var sent: [String] = []
        for _ in 0..<4 {
            sent += scene.sent().filter { $0.contains("AAAA") }
            #expect(scene.outcome == nil)
            scene.wait(2)
        }
        #expect(sent == [1, 2, 1, 2].map { "\($0) AAAA api.test" })
        #expect(scene.outcome?.failure == .lookupTimeout && scene.outcome?.timeToLive == .zero)
    }

    @Test func aServerThatFailsIsNotAskedAgain() {
        var scene = Scene(servers: 2)
        _ = scene.sent()
        scene.respond("1 A api.test", DNSResponse(code: 5))
        scene.fail("1 AAAA api.test")
        #expect(scene.sent() == ["2 A api.test", "2 AAAA api.test"])
        scene.wait(5)
        #expect(scene.sent() == ["2 A api.test", "2 AAAA api.test"])
        scene.respond("2 A api.test", Self.failed)
        scene.respond("2 AAAA api.test", Self.failed)
        #expect(scene.sent().isEmpty && scene.outcome?.failure == .nameServerFailure)
        #expect(scene.outcome?.timeToLive == .zero)
    }

    @Test(arguments: [missing, none]) func aNameWithoutAddressesIsMissingForAWhile(_ response: DNSResponse) {
        var scene = Scene()
        scene.respond("1 A api.test", response)
        scene.respond("1 AAAA api.test", Self.none)
        let time: Int64 = response.code == 3 ? 40 : 50
        #expect(scene.outcome?.failure == .nameNotFound && scene.outcome?.timeToLive == .seconds(time))
    }

    /// Some servers say so of a type that they do not know (RFC 4074, section 4.2).
    @Test func aMissingNameForOneTypeDoesNotHideTheOther() {
        var scene = Scene()
        scene.respond("1 AAAA api.test", Self.missing)
        scene.respond("1 A api.test", Self.version4)
        #expect(scene.outcome?.addresses.count == 2)
    }

    @Test func timesToLiveHaveBounds() {
        var scene = Scene()
        scene.respond("1 A api.test", DNSResponse(answers: [.address("api.test", "192.0.2.1", timeToLive: 90_000)]))
        scene.respond("1 AAAA api.test", DNSResponse())
        #expect(scene.outcome?.timeToLive == .seconds(3_600))
        var other = Scene()
        let long = DNSResponse(code: 3, authorities: [.authority("test", timeToLive: 90_000, minimum: 90_000)])
        other.respond("1 A api.test", long)
        other.respond("1 AAAA api.test", long)
        #expect(other.outcome?.timeToLive == .seconds(300))
    }

    @Test func responsesToOtherQuestionsAreIgnored() throws {
        var scene = Scene()
        let query = scene.queries[0]
        let good = Self.version4.bytes(to: query.message)
        var wrongID = good
        wrongID[1] ^= 1
        var request = good
        request[2] &= 0x7F
        let other = Self.version4.bytes(to: DNSMessage.query(try #require(DNSName("b.test")), .ipv4, id: 0))
        var wrongName = Array(good.prefix(2) + other.dropFirst(2))
        let wrongType = Self.version4.bytes(to: scene.queries[1].message)
        for bytes in [
            wrongID, request, wrongName, Array(good.prefix(2)) + wrongType.dropFirst(2), [], Array(good.dropLast()),
        ] {
            scene.respond(query, bytes)
        }
        scene.respond(query, good, from: .server(.init(address: try #require(IPAddress("192.0.2.2")))))
        scene.respond(query, good, from: .system)
        wrongName[1] ^= 1
        #expect(scene.closed.isEmpty && scene.outcome == nil)
        scene.respond(query, good)
        #expect(scene.closed == [1])
    }

    @Test func identifiersDifferAndFollowFromTheSeed() {
        let ids = { (seed: UInt64) in Scene(servers: 3, seed: seed).queries.map { Array($0.message.prefix(2)) } }
        #expect(ids(1) == ids(1) && ids(1) != ids(2) && ids(1)[0] != ids(1)[1])
    }

    @Test func aTruncatedResponseIsLeftToTheSystem() throws {
        var scene = Scene(servers: 2)
        _ = scene.sent()
        scene.respond("1 A api.test", DNSResponse(isTruncated: true))
        #expect(scene.sent() == ["system A api.test"] && scene.closed == [1])
        scene.respond("system A api.test", Self.version4)
        scene.respond("1 AAAA api.test", Self.none)
        #expect(scene.outcome?.addresses.count == 2)
    }

    @Test func theSearchListIsAskedUntilANameIsFound() {
        var scene = Scene("db", "search a.test b.test")
        #expect(scene.sent() == ["1 A db.a.test", "1 AAAA db.a.test"])
        scene.respond("1 A db.a.test", Self.missing)
        scene.respond("1 AAAA db.a.test", DNSResponse(code: 3))
        #expect(scene.sent() == ["1 A db.b.test", "1 AAAA db.b.test"])
        scene.respond("1 A db.b.test", DNSResponse(answers: [.address("db.b.test", "192.0.2.5", timeToLive: 9)]))
        scene.respond("1 AAAA db.b.test", DNSResponse())
        #expect(scene.outcome?.addresses.map(\.description) == ["192.0.2.5"])
        #expect(scene.outcome?.timeToLive == .seconds(9))
    }

    @Test func aNameWithoutADotIsAlsoAskedOfTheSystem() {
        var scene = Scene("db")
        scene.respond("1 A db", Self.missing)
        scene.respond("1 AAAA db", Self.missing)
        #expect(scene.sent().suffix(2) == ["system A db", "system AAAA db"])
        scene.respond("system A db", DNSResponse(code: 3))
        scene.respond("system AAAA db", DNSResponse(code: 3))
        #expect(scene.outcome?.failure == .nameNotFound && scene.outcome?.timeToLive == .zero)
    }

    /// Otherwise a failure of the name servers would look like a name that does not exist.
    @Test func aFailureEndsTheSearch() {
        var scene = Scene("api.test", "search a.test")
        scene.respond("1 A api.test", Self.failed)
        scene.respond("1 AAAA api.test", Self.missing)
        #expect(scene.outcome?.failure == .nameServerFailure)
    }

    @Test func theDeadlineEndsTheLookup() {
        var scene = Scene(servers: 3, "options timeout:30 attempts:5")
        scene.respond("1 A api.test", Self.version4)
        scene.wait(59)
        #expect(scene.outcome == nil && scene.lookup.nextDeadline == .start + .seconds(60))
        scene.wait(1)
        #expect(scene.outcome?.addresses.count == 2 && scene.lookup.nextDeadline == nil)
        var other = Scene(servers: 3, "options timeout:30 attempts:5")
        other.wait(60)
        #expect(other.outcome?.failure == .lookupTimeout)
        other.wait(60)
    }

    @Test func withoutServersTheSystemIsAsked() {
        var scene = Scene(servers: 0)
        #expect(scene.sent() == ["system A api.test", "system AAAA api.test"])
        scene.wait(5)
        #expect(scene.sent().count == 2)
        scene.wait(5)
        #expect(scene.outcome?.failure == .lookupTimeout)
    }
}
