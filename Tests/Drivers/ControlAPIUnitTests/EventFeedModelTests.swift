import Determinism
import HTTPTypes
import LinkModel
import NIOCore
import Testing

@testable import ControlAPI
@testable import Impairment
@testable import Proxy
@testable import Wire

/// The events of proxies, in virtual time.
@Suite struct EventFeedModelTests {
    /// A feed with one proxy that has no socket.
    private struct Feed {
        var model = EventFeedModel(version: "test", started: 1_000_000_000, dashboard: "on", limits: Self.limits)
        var proxy = ManagedProxy(name: "p", listen: "127.0.0.1:1", upstream: "127.0.0.1:2", link: nil, seed: 3)
        var position: Int64

        static var limits: EventFeedModel.Limits {
            var limits = EventFeedModel.Limits()
            limits.eventsPerFlush = 10
            limits.exchangesKept = 5
            return limits
        }

        init() throws {
            position = model.log.lastID
            model.update(proxy, nil, by: .start, at: Self.time(0))
            model.observationStarted(of: "p", start: 0, at: Self.time(0))
            model.advance(to: Self.time(0))
            #expect(try take().map(\.type) == ["summary"])
        }

        static func time(_ milliseconds: Double) -> Int64 { Int64(milliseconds * 1e6) }

        /// Takes the events since the last call.
        mutating func take() throws -> [(type: String, data: JSONValue)] {
            guard case .events(let text, let last) = model.log.read(after: position, filter: nil, bytesMax: .max) else {
                Issue.record("events are missing")
                return []
            }
            position = last
            var parser = EventStreamParser()
            return try parser.receive(Array(text.utf8)).map { event in
                (event.type, try #require(JSONText.parse(Array(event.data.utf8)), "\(event.data)"))
            }
        }

        mutating func connection(
            _ number: Int, _ milliseconds: Double, to destination: String? = nil, end: ConnectionEndReason? = nil
        ) {
            let time = Instant(Nanoseconds(Self.time(milliseconds)))
            let ended = end.map {
                ConnectionEvent.End(time: time, reason: $0, bytesRead: PerDirection(up: 10, down: 20))
            }
            let event = ConnectionEvent(
                number: number, client: Endpoint("127.0.0.1:9"), destination: destination.flatMap { Endpoint($0) },
                opened: end == nil ? time : .start, end: ended)
            model.receive(.connection(event), of: "p", at: Self.time(milliseconds))
        }

        mutating func exchange(_ event: ExchangeEvent, connection: Int = 0, _ milliseconds: Double) {
            model.receive(
                .exchange(event, connection: connection, at: Instant(Nanoseconds(Self.time(milliseconds)))), of: "p",
                at: Self.time(milliseconds))
        }

        mutating func start(
            _ number: Int, at milliseconds: Double, _ method: String = "PUT", _ target: String = "/n1",
            key: String? = nil, connection: Int = 0
        ) throws {
            let fields = key.map { [(name: "Idempotency-Key", value: $0)] } ?? []
            let head = try HTTPRequestHead(method: method, target: target, fields: fields)
            exchange(.requestStarted(ExchangeID(number: number), head), connection: connection, milliseconds)
        }

        mutating func flush(_ milliseconds: Double) throws -> [(type: String, data: JSONValue)] {
            model.advance(to: Self.time(milliseconds))
            return try take()
        }

        func hello() throws -> JSONValue {
            try #require(JSONText.parse(Array(model.snapshot(filter: nil, at: 0).hello.utf8)))
        }
    }

    @Test func anExchangeIsOneRecordPerFlush() throws {
        var feed = try Feed()
        feed.connection(0, 5)
        try feed.start(4, at: 10.25)
        let id = ExchangeID(number: 4)
        feed.exchange(.requestRead(id, bodyBytes: 12), 11)
        let first = try feed.flush(100)
        #expect(first.map(\.type) == ["connection", "exchange"])
        #expect(first.last?.data["end"] == .null)
        #expect(first.last?.data["times"]["opened"] == .integer(5))
        #expect(first.last?.data["times"]["started"] == .number(10.25))
        feed.exchange(.requestDelivered(id), 110)
        feed.exchange(.responseRead(id, status: 409, bodyBytes: 77), 120)
        feed.exchange(.responseDelivered(id, status: 409, end: 1), 130.5)
        let second = try feed.flush(200)
        #expect(second.map(\.type) == ["exchange"])
        let record = try #require(second.first?.data)
        #expect(record["id"] == first.last?.data["id"])
        #expect(record["end"].text == "completed" && record["status"] == .integer(409))
        #expect(record["request_bytes"] == .integer(12) && record["response_bytes"] == .integer(77))
        #expect(record["times"]["response_read"] == .integer(120) && record["times"]["ended"] == .number(130.5))
        #expect(try feed.flush(300).isEmpty)
    }

    @Test func anExchangeOfHTTP2NamesItsStream() throws {
        var feed = try Feed()
        let head = try HTTPRequestHead(method: "GET", target: "/", version: .http2)
        feed.exchange(.requestStarted(ExchangeID(number: 0, stream: 5), head), 1)
        try feed.start(1, at: 1)
        #expect(try feed.flush(100).filter { $0.type == "exchange" }.map { $0.data["stream"] } == [.integer(5), .null])
    }

    @Test func aConnectionOfAForwardProxyHasADestination() throws {
        var feed = try Feed()
        feed.connection(0, 1, to: "api.test:443")
        feed.connection(1, 1)
        #expect(try feed.flush(100).map { $0.data["destination"] } == [.text("api.test:443"), .null])
        #expect(
            try feed.hello()["proxies"].array.first?["connections"].array.map { $0["destination"] }.first
                == .text("api.test:443"))
    }

    /// The requests inside of an intercepted connection follow the handshake.
    @Test func aConnectionIsInterceptedWhenARequestInsideOfItsTLSIsSeen() throws {
        var feed = try Feed()
        let body = [3, 3] + [UInt8](repeating: 0, count: 33) + [0, 2, 0x13, 1, 1, 0, 0, 0]
        var hello = try #require(ClientHello(body: body))
        hello.serverName = "api.test"
        for number in 0..<3 { feed.connection(number, 1) }
        for number in 0..<2 {
            feed.exchange(.notHTTP(ExchangeEvent.tlsReason), connection: number, 1)
            feed.exchange(.tls(hello), connection: number, 1)
        }
        try feed.start(0, at: 2)
        try feed.start(1, at: 2, connection: 2)
        let events = try feed.flush(100).filter { $0.type == "connection" }.map(\.data)
        #expect(events.map { $0["intercepted"] } == [.bool(true), .bool(false), .bool(false)])
        #expect(events.map { $0["not_http"] } == [.null, .text("TLS"), .null])
        #expect(events.map { $0["server_name"] } == [.text("api.test"), .text("api.test"), .null])
    }

    @Test func theEndOfAConnectionTellsWhatIsKnownOfItsExchanges() throws {
        var feed = try Feed()
        feed.connection(0, 1)
        for number in 0..<3 { try feed.start(number, at: 2, "GET", "/\(number)") }
        feed.exchange(.requestDelivered(ExchangeID(number: 1)), 3)
        feed.exchange(.requestDelivered(ExchangeID(number: 2)), 3)
        feed.exchange(.responseRead(ExchangeID(number: 2), status: 200, bodyBytes: 0), 4)
        feed.connection(0, 5, end: .clientReset)
        let events = try feed.flush(100)
        let ends = events.filter { $0.type == "exchange" }.map { $0.data["end"].text }
        #expect(ends == ["lost-in-request", "lost-before-commit", "lost-after-commit"])
        #expect(events.first?.data["reason"].text == "client reset")
        #expect(events.first?.data["bytes"]["down"] == .integer(20))
    }

    @Test func attemptsCountExchangesThatDidNotComplete() throws {
        var feed = try Feed()
        func attempt(_ number: Int) throws -> JSONValue? {
            try feed.flush(Double(number) * 100 + 99).last { $0.type == "exchange" }?.data["attempt"]
        }
        try feed.start(0, at: 0)
        feed.exchange(.interrupted(ExchangeID(number: 0)), 1)
        #expect(try attempt(0) == .integer(1))
        try feed.start(1, at: 100)
        feed.exchange(.responseDelivered(ExchangeID(number: 1), status: 503, end: 1), 101)
        #expect(try attempt(1) == .integer(2))
        try feed.start(2, at: 200)
        feed.exchange(.responseDelivered(ExchangeID(number: 2), status: 409, end: 1), 201)
        #expect(try attempt(2) == .integer(3))
        try feed.start(3, at: 300)
        #expect(try attempt(3) == .integer(1))
        // Without a key, an exchange beside an open one is another request; with the same key it is a retry.
        try feed.start(4, at: 400)
        #expect(try attempt(4) == .integer(1))
        try feed.start(5, at: 500, key: "k")
        try feed.start(6, at: 501, key: "k")
        #expect(try attempt(6) == .integer(2))
    }

    @Test func moreEventsThanTheLimitAreCounted() throws {
        var feed = try Feed()
        for number in 0..<25 { try feed.start(number, at: 1, "GET", "/\(number)") }
        let events = try feed.flush(100)
        #expect(events.filter { $0.type == "exchange" }.count == 10)
        let dropped = try #require(events.first { $0.type == "dropped" }?.data)
        #expect(dropped["count"] == .integer(15) && dropped["reason"].text == "rate")
        #expect(dropped["proxy"].text == "p")
        feed.model.receive(.dropped(7), of: "p", at: 0)
        #expect(try feed.flush(200).map { $0.data["count"] } == [.integer(7)])
        // The record is complete with its next change.
        feed.exchange(.responseDelivered(ExchangeID(number: 24), status: 200, end: 1), 250)
        #expect(try feed.flush(300).map { $0.data["target"].text } == ["/24"])
    }

    @Test func textsFromTheNetworkAreBoundedAndValid() throws {
        let bytes: [UInt8] = Array("/a\u{1}\"\\<script>\u{2028}".utf8) + [0xFF, 0xC3, 0x28]
        let target = String(decoding: bytes, as: UTF8.self) + String(repeating: "é", count: 400)
        let record = ExchangeRecord(
            id: 1, connection: 0, method: String(repeating: "M", count: 100), target: target, attempt: 1, link: "none",
            opened: nil, started: 0, changed: 0)
        let data = try #require(JSONText.parse(Array(record.json(proxy: "p\n").utf8)))
        #expect(data["stream"] == .null)
        let shown = try #require(data["target"].text)
        #expect(shown.utf8.elementsEqual(Array(target.utf8.prefix(511)) + Array("…".utf8)))
        #expect(data["method"].text == String(repeating: "M", count: 32) + "…")
        #expect(!record.json(proxy: "p\n").contains("\n"))
        // A text is not cut within a character.
        #expect(EventText.string("aé", bytesMax: 2) == "\"a…\"")
    }

    @Test(
        arguments: [
            (nil, "null"), (0, "0"), (1_000_000, "1"), (1_500_000, "1.5"), (1_000_999, "1"), (1_002_000, "1.002"),
            (-2_500_000, "-2.5"), (1_790_000_012_345_250_000, "1790000012345.25"),
        ] as [(Int64?, String)]) func timesAreMilliseconds(nanoseconds: Int64?, text: String)
    {
        #expect(EventText.milliseconds(nanoseconds) == text)
    }

    /// The figures of a link: its queue, and the mean of the smoothed round trips.
    @Test func aLinkShowsItsQueueAndRoundTrip() {
        let direction = DirectionConditions(rate: Rate(bitsPerSecond: 80_000), delay: .milliseconds(50))
        var link = SharedLink(Conditions(up: direction, down: direction))
        let id = link.open(at: .start)
        link.receive(.connected, on: id, at: .start)
        #expect(link.smoothedRoundTrip(connectionsMax: 8) == nil)
        link.receive(.bytes(ByteBuffer(repeating: 1, count: 10_000), from: .client), on: id, at: .start)
        link.advance(to: .start + .milliseconds(120))
        let queue = LinkStatus(&link).queue.up
        #expect(queue.packets > 1 && queue.bytes > 10_000)
        // 80 kbit/s are 10 bytes/ms.
        #expect(queue.delay > .milliseconds(900) && queue.delay <= .milliseconds(Int64(queue.bytes / 10)))
        #expect(LinkStatus(&link).queue.down == QueueState())
        let roundTrip = link.smoothedRoundTrip(connectionsMax: 8) ?? .zero
        #expect(roundTrip >= .milliseconds(100) && roundTrip < .milliseconds(130))
    }

    @Test func changesAreEventsOfWhatHasChanged() throws {
        var feed = try Feed()
        func update(_ cause: ChangeCause = .api) throws -> [(type: String, data: JSONValue)] {
            feed.model.update(feed.proxy, nil, by: cause, at: Feed.time(50))
            return try feed.take()
        }
        #expect(try update().isEmpty)
        feed.proxy.link = try LinkSetting(JSONFields(body: Array(#"{"profile":"edge"}"#.utf8)))
        feed.proxy.impairedSince = Feed.time(40)
        let link = try update()
        #expect(link.map(\.type) == ["link"])
        #expect(link[0].data["name"].text == "edge" && link[0].data["by"].text == "api")
        #expect(link[0].data["down"]["rate_bps"] == .integer(240_000) && link[0].data["applies"] == .bool(true))
        #expect(link[0].data["since"] == .integer(40))
        feed.proxy.link = .passThrough
        feed.proxy.upstream = "127.0.0.1:3"
        feed.proxy.faults = [
            try StoredFault(
                .init(JSONFields(body: Array(#"{"rule":"PUT * before-request-end reset"}"#.utf8))), names: [])
        ]
        #expect(try update(.reset).map(\.type) == ["proxy", "fault", "link"])
        feed.proxy.faults = []
        let removed = try update()
        #expect(removed.map(\.type) == ["fault", "link"])
        #expect(removed[0].data["change"].text == "removed" && removed[0].data["name"].text == "fault_1")
        feed.model.remove("p", at: 0)
        #expect(try feed.take().map { $0.data["change"].text } == ["deleted"])
    }

    @Test func aFaultThatFiresNamesItsExchange() throws {
        var feed = try Feed()
        var fault = try StoredFault(
            .init(JSONFields(body: Array(#"{"rule":"PUT * before-request-end reset"}"#.utf8))), names: [])
        fault.number = 4
        feed.proxy.faults = [fault]
        feed.model.update(feed.proxy, nil, by: .api, at: 0)
        _ = try feed.take()
        try feed.start(0, at: 1)
        let id = ExchangeID(number: 0)
        feed.exchange(.faultInjected(id, rule: 4, point: .beforeRequestEnd, offset: 99), 2)
        feed.exchange(.interrupted(id), 2)
        let events = try feed.flush(100)
        #expect(events.map(\.type) == ["exchange", "fault"])
        #expect(events[0].data["fault"]["name"].text == "fault_1")
        #expect(events[1].data["change"].text == "fired" && events[1].data["fired"] == .integer(1))
        #expect(events[1].data["exchange"] == events[0].data["id"])
        #expect(events[1].data["offset"] == .integer(99))
    }

    @Test func aSnapshotHasTheLastExchangesAndOpenConnections() throws {
        var feed = try Feed()
        feed.connection(0, 1)
        feed.connection(1, 1)
        for number in 0..<8 {
            try feed.start(number, at: 2, "GET", "/\(number)")
            feed.exchange(.responseDelivered(ExchangeID(number: number), status: 200, end: 1), 3)
        }
        try feed.start(8, at: 4, "GET", "/8")
        feed.connection(1, 5, end: .clientClosed)
        _ = try feed.flush(100)
        let proxy = try #require(try feed.hello()["proxies"].array.first)
        #expect(proxy["exchanges"].array.map { $0["target"].text } == ["/4", "/5", "/6", "/7", "/8"])
        #expect(proxy["connections"].array.map { $0["number"] } == [.integer(0)])
        #expect(proxy["definition"]["upstream"].text == "127.0.0.1:2" && proxy["link"]["name"].text == "none")
        #expect(proxy["summary"]["connections_waiting"] == .integer(0))
    }

    @Test func aSummaryIsSentWhenItHasChanged() throws {
        var summary = ProxySummary()
        var link = SharedLink()
        var status = ProxyStatus(link: LinkStatus(&link))
        func update(_ milliseconds: Double) -> JSONValue? {
            let json = summary.update(
                "p", status, earlier: TrafficCounters(), waiting: 0, timeline: "null", at: Feed.time(milliseconds))
            return json.flatMap { JSONText.parse(Array($0.utf8)) }
        }
        #expect(update(0)?["rate"]["up"] == .integer(0))
        #expect(update(100) == nil)
        let id = link.open(at: .start)
        link.receive(.connected, on: id, at: .start)
        link.receive(.bytes(ByteBuffer(repeating: 1, count: 1000), from: .client), on: id, at: .start)
        status = ProxyStatus(link: LinkStatus(&link))
        #expect(update(200)?["rate"]["up"] == .integer(5000))
        #expect(update(300)?["rate"]["up"] == .integer(3333))
        for time in stride(from: 400.0, through: 1000, by: 100) { #expect(update(time) != nil) }
        // The bytes have left the window of the rate.
        _ = update(1100)
        #expect(update(1200)?["rate"]["up"] == .integer(0))
        #expect(update(1300) == nil)
        // A proxy without changes sends no statuses; its idle time is not part of the rate.
        link.receive(.bytes(ByteBuffer(repeating: 1, count: 1000), from: .client), on: id, at: .start)
        status = ProxyStatus(link: LinkStatus(&link))
        #expect(update(60_000)?["rate"]["up"] == .integer(1000))
    }
}
