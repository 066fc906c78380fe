import Client
import Determinism
import Field
import TestSupport
import Testing

/// Transfers of files and photos in a time that the tests advance.
@Suite struct FieldTransferTests {
    // MARK: Files

    @Test func onlyOneFileIsTransferredAtOnceInRandomOrder() throws {
        var orders: Set<[String]> = []
        for seed in 1...20 as ClosedRange<UInt64> {
            var client = try FieldClient(seed: seed, settings: ["every": "60000ms"], files: [100, 200, 300, 400, 500])
            client.fates = [("files/f3", .status(404))]
            client.answerAll()
            // A run ends after three failures; the others are pulled within six runs.
            let first = client.requests().count { $0.hasSuffix("f3") }
            #expect(first <= 3, "seed \(seed)")
            client.run(for: .seconds(5 * 60))
            #expect(client.streamsMax == 1, "seed \(seed)")
            for key in ["f1", "f2", "f4", "f5"] { #expect(client.text(key) == "available", "seed \(seed)") }
            #expect(client.row("f3")?.error == "failed" && client.text("f3") == "missing", "seed \(seed)")
            #expect(client.engine.isSettled, "seed \(seed)")
            orders.insert(client.requests().filter { $0.hasPrefix("GET files") && !$0.hasSuffix("f3") })
            client.fates = []
            try client.call("fetch", "f3")
            client.answerAll()
            #expect(client.text("f3") == "available" && client.row("f3")?.error == nil, "seed \(seed)")
        }
        #expect(orders.count >= 2)
    }

    @Test func aBehaviorMayTransferFilesInParallel() throws {
        var behavior = FieldBehavior()
        behavior.filesAtOnce = 2
        var client = try FieldClient(behavior: behavior, files: [100, 200, 300])
        client.answerAll()
        #expect(client.streamsMax == 2)
    }

    @Test(arguments: [1, 64 << 10, (64 << 10) + 1, 200_000]) func anInterruptedFileContinuesWhereItWas(_ size: Int)
        throws
    {
        for cut in [0, 1, 30_000, 65_535] where cut < size {
            var client = try FieldClient(files: [size])
            client.answer()
            client.answer(.cutAfter(cut))
            if cut % 2 == 1 { try client.restart() }
            client.answerAll()
            client.run(for: .seconds(3600))
            #expect(client.text("f1") == "available" && client.streamedBytes == size, "cut after \(cut)")
            let pieces = client.state.values(under: "piece/").flatMap(\.value)
            #expect(pieces.count == size)
        }
    }

    @Test func aRunStopsBeforeTheEndOfItsWindowAndTheNextOneContinues() throws {
        let size = 1_000_000
        var client = try FieldClient(settings: ["window": "30000ms", "every": "600000ms"], files: [size])
        client.answer()
        var transfers: [Instant] = []
        // 30 kB/s, and a second for each request.
        for _ in 0..<200 where client.text("f1") != "available" {
            if client.inFlight.isEmpty {
                let next = try #require(client.engine.nextDeadline)
                client.advance(by: next - client.now)
            } else {
                transfers.append(client.now)
                let range = client.inFlight[0].fields.first { $0.name == "Range" }?.value.dropFirst("bytes=".count)
                let bounds = (range ?? "0-0").split(separator: "-").compactMap { Int64($0) }
                let end = client.now + .milliseconds(1000 + (bounds[1] - bounds[0]) / 30)
                if let next = client.engine.nextDeadline, next < end {
                    client.advance(by: next - client.now)
                } else {
                    client.advance(by: end - client.now)
                    client.answer()
                }
            }
            #expect(client.pastDeadlines == 0)
        }
        #expect(client.text("f1") == "available" && client.streamedBytes == size)
        // No request begins, or is in flight, between 25 s and the next run.
        for time in transfers { #expect(time.sinceStart.count % 600_000_000_000 <= 23_000_000_000) }
        #expect(Set(transfers.map { $0.sinceStart.count / 600_000_000_000 }).count == 2)
    }

    @Test func aFileWithAnotherDigestIsNotPulled() throws {
        var client = try FieldClient(files: [1000])
        client.answer()
        let request = client.inFlight.removeFirst()
        let tag = request.fields.first { $0.name == "If-Range" }?.value ?? ""
        let fields = [(name: "ETag", value: tag), (name: "Content-Range", value: "bytes 0-999/1000")]
        let bytes = [UInt8](repeating: 7, count: 1000)
        client.engine.pieceReceived(
            AppResponse(status: 206, fields: fields, body: bytes), to: request.number, at: client.now)
        client.engine.responseReceived(AppResponse(status: 206, fields: fields), to: request.number, at: client.now)
        client.take()
        #expect(client.text("f1") == "missing" && client.row("f1")?.error == "failed")
        #expect(client.state.values(under: "piece/").isEmpty)
        client.answerAll()
        #expect(client.text("f1") == "available")
    }

    @Test func aPartOfAFileIsNeverOpened() throws {
        var client = try FieldClient(files: [100_000])
        client.answer()
        client.answer()
        try client.perform(.open(FieldClient.key("f1")))
        #expect(client.engine.view.screen.error == "loading" && client.engine.view.screen.fields["bytes"] == nil)
        client.setInterface(false)
        #expect(client.engine.view.screen.error == "no-wifi" && client.engine.view.screen.fields["bytes"] == nil)
        client.setInterface(true)
        client.answer(.status(404))
        client.answer(.status(404))
        client.answer(.status(404))
        #expect(client.engine.view.screen.error == "failed" && client.engine.view.screen.controls.contains("retry"))
        try client.call("fetch", "f1")
        client.answerAll()
        #expect(client.engine.view.screen.error == nil && client.engine.view.screen.fields["bytes"] == "100000")
    }

    @Test func filesStayWithinTheQuotaAndPinnedOnesAreKept() throws {
        var client = try FieldClient(settings: ["quota": "1000"], files: [600, 300, 400])
        client.answerAll()
        #expect(client.text("f1") == "available" && client.text("f2") == "available")
        #expect(client.row("f3")?.error == "no-space")
        try client.perform(.pin(FieldClient.key("f1")))
        try client.perform(.open(FieldClient.key("f3")))
        client.answerAll()
        #expect(client.text("f3") == "available" && client.text("f1") == "available")
        #expect(client.row("f2")?.error == "no-space")
        try client.call("unpin", "f1")
        try client.perform(.open(FieldClient.key("f2")))
        client.answerAll()
        #expect(client.text("f2") == "available" && client.text("f3") == "available" && client.text("f1") == "missing")
    }

    // MARK: Photos

    @Test func anInterruptedPhotoContinuesWhereTheServerHasIt() throws {
        for cut in 0..<4 {
            var client = try FieldClient()
            client.answerAll()
            try client.create("p1", in: "i1", ["title": "lamp", "text": "200000"])
            // The push, the pull and the question for the offset.
            for _ in 0..<3 { client.answer() }
            for _ in 0..<cut { client.answer() }
            client.answer(cut % 2 == 0 ? .lostRequest : .lostResponse)
            if cut == 2 { try client.restart() }
            client.run(for: .seconds(10))
            #expect(client.record("p1")?.text == "200000")
            let sent = client.sent.indices.filter { client.sent[$0].hasPrefix("PATCH") }
            // One part is sent twice if its request was lost.
            let bytes = sent.reduce(0) { $0 + client.bodies[$1].count }
            #expect(bytes <= 200_000 + (64 << 10), "cut \(cut)")
        }
    }

    @Test func aPhotoThatTheServerHasIsNotSentAgain() throws {
        var client = try FieldClient()
        client.answerAll()
        try client.create("p1", in: "i1", ["title": "lamp", "text": "1000"])
        for _ in 0..<3 { client.answer() }
        client.answer(.lostResponse)
        client.run(for: .seconds(10))
        #expect(client.requests().count { $0.hasPrefix("PATCH") } == 1 && client.engine.view.outbox == 0)
    }

    // MARK: Properties

    /// Whatever fails and however the user acts, the server and the device agree in the end.
    @Test(arguments: randomSeeds(6, soak: 300)) func everythingArrivesOnce(_ seed: UInt64) throws {
        var random = RandomStream(seed: seed, "test/field")
        var client = try FieldClient(
            seed: seed, settings: ["window": "30000ms", "every": "60000ms"], files: [100_000, 5000],
            schedule: (length: 3_600_000, grace: 365 * FieldClient.day))
        client.answerAll()
        var notes = 0
        for step in 0..<60 {
            switch random.integer(below: 12) {
            case 0: try? client.create("a\(step)", in: "q1", ["text": "\(step)"])
            case 1:
                try client.call("note", "i1", ["text": "\(step)"])
                notes += 1
            case 2:
                try client.create(
                    "p\(step)", in: "i1", ["title": "p", "text": "\(1 + random.integer(below: 150_000))"])
            case 3: client.setInterface(random.bool(probability: 0.5))
            case 4: try client.restart()
            case 5: client.advance(by: .seconds(random.integer(below: 3600)))
            case 6: client.answer(.lostRequest)
            case 7: client.answer(.lostResponse)
            case 8: client.answer(.status(503))
            case 9: client.answer(.cutAfter(Int(random.integer(below: 60_000))))
            case 10: try client.perform(.sync)
            default: client.answer()
            }
            #expect(client.streamsMax <= 1)
        }
        client.setInterface(true)
        for _ in 0..<100 where !client.engine.isSettled { client.run(for: .seconds(60)) }
        try client.perform(.sync)
        client.run(for: .seconds(60))
        #expect(client.engine.isSettled && client.engine.view.outbox == 0 && client.pastDeadlines == 0)
        #expect(client.record("i1")?.revision == notes + 1)
        #expect(client.state.values(under: "record/").isEmpty && client.state.values(under: "photo/").isEmpty)
        let shown = client.engine.view.rows.map { "\($0.key) \($0.fields["text"] ?? "-")" }
        let stored = client.service.records(of: "ada").map { "\($0.key) \($0.text ?? "-")" }
        #expect(shown.sorted() == stored.sorted())
    }

    // MARK: Changes on the server

    @Test func aFileThatWasReplacedMeanwhileIsNoticedOnce() throws {
        var client = try FieldClient(files: [100_000])
        client.answer()
        #expect(client.service.change("f1", title: "New", text: nil, owner: "ada"))
        client.answerAll()
        #expect(client.row("f1")?.fields["title"] == "New" && client.text("f1") == "available")
        // A server that contradicts its payload is not asked for it again and again.
        var other = try FieldClient(files: [100_000])
        other.fates = [("files/f1", .status(404))]
        other.answerAll()
        #expect(other.requests().count { $0 == "GET payload" } == 2)
        #expect(other.requests().count { $0 == "GET files/f1" } <= 3)
    }

    @Test func aRecordThatARestoredServerHasLostIsPushedAgain() throws {
        var client = try FieldClient()
        client.answerAll()
        let restore = client.service.backup()
        try client.create("a1", in: "q1", ["text": "yes"])
        client.answer()
        restore()
        client.answerAll()
        client.run(for: .seconds(5))
        #expect(client.record("a1")?.text == "yes" && client.text("a1") == "yes")
        #expect(client.engine.isSettled)
    }
}
