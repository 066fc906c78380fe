import Client
import Determinism
import NotesContract
import NotesService
import Testing
import Wire

/// Pauses, `Retry-After` and recovery.
extension HostileServerTests {
    /// The times of the requests with a prefix such as "PUT".
    private static func times(_ device: Device, _ prefix: String) -> [Double] {
        device.sent.filter { $0.request.hasPrefix(prefix) }.map(\.at.sinceStart.inSeconds)
    }

    private static func gaps(_ times: [Double]) -> [Double] { zip(times.dropFirst(), times).map { $0 - $1 } }

    @Test(arguments: contracts) func aConflictThatKeepsComingBackIsTriedEverLessOften(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        // The server says that the base is stale, and its note has that base.
        world.server.rules = [HostileRule("PUT", .respond(.notes(409)))]
        device.edit(note, "b")
        world.run(for: .seconds(600))
        let gaps = Self.gaps(Self.times(device, "PUT"))
        #expect((5...25).contains(gaps.count))
        for (number, gap) in gaps.enumerated() { #expect(gap >= min(60, Double(1 << number)) / 2, "pause \(number)") }
        #expect(device.icon(note) == .upload, "it is no conflict")
        world.server.rules = []
        world.run(for: .seconds(70))
        #expect(world.server.texts == [note: "b"] && device.icon(note) == RecordRow.Icon.none)
    }

    @Test(arguments: [400, 409]) func aCreationThatIsRejectedAlthoughNothingExistsIsTriedEverLessOften(status: Int) {
        let world = World(.orig)
        let device = world.startDevice()
        world.settle()
        world.server.rules = [HostileRule("POST", .respond(.notes(status)))]
        let note = device.create("n", "a")
        world.run(for: .seconds(600))
        #expect((1...25).contains(Self.times(device, "POST").count))
        world.server.rules = []
        if device.icon(note) == .error { device.retry(note) }
        world.run(for: .seconds(70))
        #expect(world.server.texts == [note: "a"] && device.icon(note) == RecordRow.Icon.none)
    }

    @Test(arguments: contracts) func aListThatIsGoneIsReadEverLessOftenAndDelaysNoChange(_ contract: APIContract) {
        let world = World(contract)
        let gone = [HostileRule("GET", .respond(.notes(410)), where: isIndex)]
        world.server.rules = gone
        let device = world.startDevice()
        world.run(for: .seconds(600))
        #expect((5...25).contains(Self.times(device, "GET").count))
        let note = device.create("n", "a")
        world.run(for: .seconds(5))
        #expect(world.server.texts == [note: "a"])
        world.server.rules = []
        world.run(for: .seconds(70))
        #expect(device.status.isSettled)
        world.server.rules = gone
        device.sync()
        device.edit(note, "b")
        world.run(for: .seconds(5))
        #expect(world.server.texts == [note: "b"])
    }

    /// A `Retry-After`, and the time that it means in seconds.
    struct Delay: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let response: WireResponse
        let seconds: Double

        init(_ name: String, _ response: WireResponse, _ seconds: Double) {
            testDescription = name
            self.response = response
            self.seconds = seconds
        }
    }

    static let delays: [Delay] = [
        Delay("seconds", .notes(503, headers: [("Retry-After", "90")]), 90),
        Delay("429", .notes(429, headers: [("Retry-After", "90")]), 90),
        Delay("gateway 503", .foreign(503, headers: [("Retry-After", "90")]), 90),
        Delay("gateway 429", .foreign(429, headers: [("Retry-After", "90")]), 90),
        Delay(
            "date against Date",
            .notes(
                503,
                headers: [
                    ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Retry-After", "Sun, 06 Nov 1994 08:51:37 GMT"),
                ]), 120),
        Delay(
            "obsolete date of a gateway",
            .foreign(
                503,
                headers: [
                    ("Date", "Sun Nov  6 08:49:37 1994"), ("Retry-After", "Sunday, 06-Nov-94 08:59:37 GMT"),
                ]), 600),
        Delay("a day", .notes(503, headers: [("Retry-After", "86400")]), 86_400),
        Delay("a year is a day", .notes(503, headers: [("Retry-After", "31536000")]), 86_400),
        Delay(
            "endless digits are a day", .notes(503, headers: [("Retry-After", String(repeating: "9", count: 40))]),
            86_400),
    ]

    /// The responses to a change and to the index.
    @Test(arguments: delays, ["POST", "GET"]) func retryAfterIsRespected(_ delay: Delay, _ method: String) {
        let world = World()
        let device = world.startDevice()
        world.settle()
        world.run(for: .seconds(1))
        world.server.rules = [HostileRule(method, nth: 1...1, .respond(delay.response))]
        let start = world.now
        if method == "POST" { _ = device.create("n", "a") } else { device.sync() }
        world.run(for: .milliseconds(200))
        #expect(world.server.rules[0].matchedRequests == 1)
        let sent = device.sent.count
        // The user and the interface do not shorten it, nor does another process.
        world.run(for: .seconds(Int64(delay.seconds / 4)))
        device.setInterface(isUp: false)
        world.run(for: .seconds(1))
        device.setInterface(isUp: true)
        world.run(for: .seconds(Int64(delay.seconds / 4)))
        device.sync()
        _ = device.create("m", "b")
        world.run(for: .seconds(Int64(delay.seconds * 0.9)) - (world.now - start))
        #expect(device.sent.count == sent)
        world.run(for: .seconds(Int64(delay.seconds * 0.1) + 70))
        #expect(world.server.texts.count == (method == "POST" ? 2 : 1))
        let next = device.sent[sent].at - start
        #expect(next.inSeconds >= delay.seconds && next.inSeconds <= delay.seconds + 10)
    }

    @Test(arguments: ["soon", "-5", "", "Sun, 06 Nov 1994 08:49:37", "99 Xyz", "1.5", "Sun, 06 Nov 1066 08:49:37 GMT"])
    func anUnreadableRetryAfterIsIgnored(_ value: String) {
        let world = World()
        let device = world.startDevice()
        world.settle()
        world.server.rules = [HostileRule("POST", nth: 1...1, .respond(.notes(503, headers: [("Retry-After", value)])))]
        let note = device.create("n", "a")
        world.run(for: .seconds(5))
        #expect(device.icon(note) == RecordRow.Icon.none)
    }

    @Test(arguments: [true, false]) func aChangeDoesNotWaitForTheDelayAfterFailedReads(areCut: Bool) {
        let effect: HostileRule.Effect = areCut ? .cutResponse(after: 0) : .respond(.notes(500))
        let world = World()
        let devices = ["A", "B"].map { world.startDevice($0) }
        world.settle()
        let note = devices[0].create("n", "a")
        world.settle()
        devices[1].sync()
        world.settle()
        world.server.rules = [HostileRule("GET", from: ["A"], effect, where: isNote(note))]
        devices[1].edit(note, "b")
        world.run(for: .seconds(1))
        devices[0].sync()
        world.run(for: .seconds(240))
        let reads = devices[0].sent.filter { $0.request.hasPrefix("GET \(World.path(note))") }
        #expect(reads.count >= 5, "the delay is long")
        devices[0].edit(note, "c")
        world.run(for: .seconds(2))
        #expect(Self.times(devices[0], "PUT").count == 1)
    }

    @Test(arguments: [true, false]) func twentyClientsThatHealAtOnceDoNotStampede(isSignalled: Bool) {
        let world = World()
        let devices = (0..<20).map { world.startDevice("D\($0)") }
        world.settle()
        for device in devices {
            if isSignalled { device.setInterface(isUp: false) } else { device.link.set(.refusing) }
            for number in 0..<5 { _ = device.create("\(number)", "text") }
        }
        world.run(for: .seconds(300))
        let sent = devices.map(\.sent.count)
        let arrived = world.server.arrivals.count
        for device in devices {
            if isSignalled { device.setInterface(isUp: true) } else { device.link.set(.up) }
        }
        let healed = world.now
        world.run(for: .seconds(1))
        let posts = world.server.arrivals.dropFirst(arrived).filter { $0.method == "POST" }
        #expect(posts.count < 50)
        // A signalled recovery is noticed within 5 s; another one by the next probe, a minute later at most.
        world.run(for: .seconds(isSignalled ? 4 : 64))
        for (device, sent) in zip(devices, sent) {
            #expect(device.sent.count > sent)
            if device.sent.count > sent {
                #expect(device.sent[sent].request.hasPrefix("GET"), "a probe is sent before the queue")
                #expect(device.sent[sent].at - healed <= .seconds(isSignalled ? 5 : 65))
            }
        }
        world.run(for: .seconds(30))
        #expect(world.server.texts.count == 100)
        #expect(world.problems == [])
    }

    @Test func oneAttemptIsMadeForEachRecovery() {
        let world = World()
        let device = world.startDevice()
        world.settle()
        device.setInterface(isUp: false)
        for number in 0..<10 { _ = device.create("\(number)", "text") }
        device.link.set(.refusing)
        let sent = device.events.count
        device.setInterface(isUp: true)
        world.run(for: .seconds(5))
        func attempts() -> Int {
            device.events.dropFirst(sent).filter { if case .sent = $0.event { true } else { false } }.count
        }
        // The edge's attempt fails; the next ones follow the growing pauses and not the queue.
        #expect((1...5).contains(attempts()))
        // Ten edges in a row: one attempt for each at most.
        for _ in 0..<10 {
            device.setInterface(isUp: false)
            device.setInterface(isUp: true)
        }
        let before = attempts()
        world.run(for: .seconds(3))
        #expect(attempts() - before <= 10)
    }

    @Test(arguments: [Link.Mode.refusing, .stalled], [300, 1800]) func attemptsDuringAnOutageAreBounded(
        _ mode: Link.Mode, seconds: Int64
    ) {
        let world = World()
        let device = world.startDevice()
        world.settle()
        device.link.set(mode)
        for number in 0..<50 { _ = device.create("\(number)", "text") }
        let before = device.events.count
        world.run(for: .seconds(seconds))
        let attempts = device.events.dropFirst(before).filter { if case .sent = $0.event { true } else { false } }
        #expect(attempts.count <= SyncPolicy().attemptsMax(duringOutage: .seconds(seconds)), "\(attempts.count)")
        device.link.set(.up)
        // The next probe, and then the queue.
        #expect(world.run(limit: .seconds(65 + 10)) { world.server.texts.count == 50 })
    }

    @Test func exchangesOnAnInterfaceThatGoesDownAreCancelledSoThatRecoveryIsPrompt() {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        device.link.set(.stalled)
        device.edit(note, "b")
        world.run(for: .seconds(1))
        let before = device.sent.count
        device.setInterface(isUp: false)
        #expect(device.events.contains { if case .cancelled = $0.event { true } else { false } })
        world.run(for: .seconds(2))
        #expect(device.sent.count == before, "nothing is sent while the interface is down")
        device.link.set(.up)
        device.setInterface(isUp: true)
        let healed = world.now
        #expect(world.run(limit: .seconds(5)) { device.sent.count > before })
        #expect(world.run(limit: .seconds(10)) { world.server.texts[note] == "b" }, "\(world.now - healed)")
        world.settle()
        #expect(device.icon(note) == RecordRow.Icon.none && world.server.writes.count == 2)
    }

    @Test func anUploadThatWasCancelledByItsInterfaceIsSentAgain() {
        let world = World()
        let device = world.startDevice()
        world.settle()
        device.link.rate = 10_000
        let large = device.create("large", String(repeating: "x", count: 100_000))
        world.run(for: .seconds(3))
        device.setInterface(isUp: false)
        world.run(for: .seconds(10))
        device.setInterface(isUp: true)
        #expect(world.run(limit: .seconds(30)) { device.icon(large) == RecordRow.Icon.none })
        #expect(world.server.writes.count == 1)
    }

    @Test func aMeteredInterfaceIsUsedOnlyIfThePolicyAllowsIt() {
        let world = World()
        let device = world.startDevice("A", policy: SyncPolicy(interfaces: .unmetered))
        world.settle()
        device.setInterface(isUp: true, isMetered: true)
        let note = device.create("n", "a")
        let sent = device.bytesSent
        world.run(for: .seconds(600))
        #expect(device.bytesSent == sent && device.status.connectivity == .interfaceNotAllowed)
        device.setInterface(isUp: true, isMetered: false)
        #expect(world.run(limit: .seconds(5)) { world.server.texts[note] == "a" })
    }

    /// 401, or 403 for every request.
    @Test(arguments: [401, 403]) func rejectedCredentialsPauseTheQueueUntilTheyChange(status: Int) {
        let world = World(.strict)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        world.server.rules = [HostileRule(.respond(.notes(status)))]
        device.edit(note, "b")
        world.run(for: .seconds(60))
        #expect(device.status.pauseReason != nil)
        let arrived = world.server.arrivals.count
        world.run(for: .seconds(600))
        #expect(world.server.arrivals.count == arrived, "nothing is sent")
        device.edit(note, "c")
        world.run(for: .seconds(60))
        #expect(world.server.arrivals.count == arrived && device.text(note) == "c")
        world.server.rules = []
        device.credentials()
        world.settle()
        #expect(world.server.texts == [note: "c"] && device.icon(note) == RecordRow.Icon.none)
        #expect(device.status.pauseReason == nil)
    }

    /// A change is sent beside the slow index before the server rejects the credentials of both.
    @Test(arguments: [401, 403]) func rejectedCredentialsBindNoStore(status: Int) {
        let world = World(.strict)
        let device = world.startDevice()
        let note = device.create("n", "a")
        device.link.latency = .seconds(1)
        world.server.rules = [HostileRule(.respond(.notes(status)))]
        #expect(world.run(limit: .seconds(30)) { world.server.arrivals.contains { $0.method == "POST" } })
        #expect(device.store.account != nil, "an attempt of unknown outcome belongs to an account")
        #expect(world.run(limit: .seconds(60)) { device.status.pauseReason != nil && device.store.account == nil })
        world.run(for: .seconds(60))
        #expect(device.store.account == nil)
        #expect(device.store.entries.values.allSatisfy { !$0.mayBeCommitted })
        world.server.rules = []
        device.credentials()
        world.settle()
        #expect(device.store.account?.user == "ada" && device.store.account?.history != nil)
        #expect(world.server.texts == [note: "a"])
    }

    /// The response to the change is lost, so the change may have been executed: the store keeps the account.
    @Test func aChangeOfUnknownOutcomeKeepsTheAccountOfRejectedCredentials() {
        let world = World(.strict)
        let device = world.startDevice()
        _ = device.create("n", "a")
        device.link.latency = .seconds(1)
        world.server.rules = [
            HostileRule("POST", .cutResponse(after: 0)), HostileRule("GET", .respond(.notes(401))),
        ]
        world.run(limit: .seconds(120)) { device.status.pauseReason != nil }
        #expect(device.store.account?.user == "ada")
    }

    @Test func aLateRejectionOfOldCredentialsPausesNothing() {
        let world = World(.strict)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        world.server.rules = [HostileRule("PUT", nth: 1...1, .respond(.notes(401)))]
        device.link.latency = .seconds(3)
        device.edit(note, "b")
        world.run(for: .seconds(5))
        device.credentials()
        world.settle()
        #expect(device.status.pauseReason == nil)
        #expect(world.server.texts == [note: "b"] && device.icon(note) == RecordRow.Icon.none)
    }

    @Test func aChangeThatTheServerRejectsIsParkedAloneAndSentAgainOnRequest() {
        let world = World()
        let device = world.startDevice()
        world.settle()
        world.server.rules = [HostileRule("POST", nth: 1...1, .respond(.notes(413)))]
        let bad = device.create("bad", "too long")
        let good = device.create("good", "fine")
        world.settle()
        #expect(device.icon(bad) == .error && device.row(bad)?.problem?.isEmpty == false)
        #expect(device.status.parked == 1 && device.status.outbox == 0)
        #expect(world.server.texts == [good: "fine"])
        world.run(for: .seconds(600))
        #expect(device.sentWrites.count == 2)
        device.kill()
        device.start()
        world.settle()
        #expect(device.icon(bad) == .error, "a parked change is remembered")
        device.retry(bad)
        world.settle()
        #expect(world.server.texts.count == 2 && device.icon(bad) == RecordRow.Icon.none)
    }

    @Test func aDismissedChangeRestoresWhatTheServerHas() {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        world.server.rules = [HostileRule("PUT", .respond(.notes(422)))]
        device.edit(note, "b")
        world.settle()
        #expect(device.icon(note) == .error)
        device.dismiss(note)
        world.settle()
        #expect(device.texts == [note: "a"] && device.icon(note) == RecordRow.Icon.none)
        #expect(device.store.entries.isEmpty)
        // A rejected creation leaves nothing.
        world.server.rules = [HostileRule("POST", .respond(.notes(413)))]
        let bad = device.create("bad", "x")
        world.settle()
        device.dismiss(bad)
        world.settle()
        #expect(device.row(bad) == nil && device.store.records.count == 1 && device.store.entries.isEmpty)
    }

    @Test func aServerErrorParksAChangeAfterFiveAttempts() {
        let world = World()
        let device = world.startDevice()
        world.settle()
        world.server.rules = [HostileRule("POST", .respond(.notes(500)))]
        let note = device.create("n", "a")
        world.run(for: .seconds(600))
        #expect(device.icon(note) == .error && device.sentWrites.count == 5)
        // An edit sends it again, under the same identifier.
        world.server.rules = []
        device.edit(note, "b")
        world.settle()
        #expect(world.server.texts == [note: "b"] && device.icon(note) == RecordRow.Icon.none)
    }

    @Test(arguments: [408, 425, 429, 502, 503, 504]) func aTransientStatusNeverExhaustsAChange(status: Int) {
        let world = World()
        let device = world.startDevice()
        world.settle()
        world.server.rules = [HostileRule("POST", .respond(.notes(status)))]
        let note = device.create("n", "a")
        world.run(for: .seconds(3600))
        #expect(device.icon(note) == .upload && device.sentWrites.count >= 60)
        world.server.rules = []
        world.run(for: .seconds(65))
        #expect(world.server.texts == [note: "a"])
    }

    @Test(arguments: contracts) func aCaptivePortalChangesNothingAndIsReported(_ contract: APIContract) {
        let world = World(contract)
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        let records = device.store.records
        world.server.rules = [HostileRule(.respond(.foreign(200)))]
        world.run(for: .seconds(600))
        #expect(device.store.records == records)
        #expect(device.status.foreignServer?.status == 200)
        device.edit(note, "b")
        world.run(for: .seconds(30))
        world.server.rules = []
        #expect(world.run(limit: .seconds(65)) { world.server.texts == [note: "b"] })
        world.settle()
        #expect(device.status.foreignServer == nil && device.icon(note) == RecordRow.Icon.none)
    }

    @Test(arguments: ["220 mail.example ESMTP\r\n", "SSH-2.0-x\r\n", "\u{16}\u{3}\u{1}", "HTTP/9.9 200 OK\r\n\r\n"])
    func bytesThatAreNotHTTPChangeNothing(_ text: String) {
        let world = World()
        let device = world.startDevice()
        let note = device.create("n", "a")
        world.settle()
        world.server.rules = [HostileRule(.raw(Array(text.utf8)), nth: 1...6)]
        device.edit(note, "b")
        world.run(for: .seconds(1))
        #expect(device.icon(note) == .upload)
        if !text.hasPrefix("HTTP") { #expect(device.status.foreignServer != nil) }
        world.settle(limit: .seconds(300))
        #expect(world.server.texts == [note: "b"] && device.icon(note) == RecordRow.Icon.none)
        #expect(device.status.foreignServer == nil)
    }
}
