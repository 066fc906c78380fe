import Client
import Determinism
import NIOCore
import TestSupport
import Testing
import Wire

@testable import LiveClient

/// The machine's decisions, without sockets: each test plays the driver.
@Suite struct SyncMachineTests {
    /// A driver in virtual time: commits succeed unless ``isDiskFull``, and the test opens connections.
    private final class Driver {
        var machine = SyncMachine(
            engine: NotesEngine(
                SyncEngine(
                    SyncEngine.Configuration(account: SyncAccount(user: "ada", server: "127.0.0.1:8000"), seed: 1))),
            host: "127.0.0.1:8000", authorization: "Basic YWRhOnNlY3JldA==")
        var now = Instant.start
        let store: SyncStore
        var log: [String] = []
        var writes: [(id: HTTPConnectionID, text: String)] = []
        var connects: [HTTPConnectionID] = []
        var isDiskFull = false

        init() throws { store = try SyncStore(path: nil, resource: NotesResource().name) }

        /// Carries out all actions and logs them.
        func run(isUserChange: Bool = false) throws {
            while let action = machine.takeAction() {
                switch action {
                case .commit(let change):
                    log.append(isDiskFull ? "commit fails" : "commit")
                    if isDiskFull && isUserChange {
                        machine.change(at: now) { sync, now in sync.undoUserChange(at: now) }
                    } else if isDiskFull {
                        machine.commitFailed("the disk is full", at: now)
                    } else {
                        #expect(try store.commit(change) == .committed)
                        machine.committed(at: now)
                    }
                case .connect(let id):
                    log.append("connect")
                    connects.append(id)
                case .write(let id, let bytes):
                    let text = String(buffer: bytes)
                    log.append("write \(text.prefix { $0 != " " })")
                    writes.append((id, text))
                    machine.process(.written(bytes.readableBytes, id), at: now)
                case .close: log.append("close")
                case .report(.sent(_, let method, let target)):
                    log.append("sent \(method) \(target.prefix { $0 != "?" })")
                case .report(.responded(_, let status)): log.append("responded \(status)")
                case .report(.failed(_, let reason)): log.append("failed: \(reason)")
                case .report(.commitFailed(let reason)): log.append("reported: \(reason)")
                case .report(.commitRecovered): log.append("recovered")
                case .report: break
                }
            }
        }

        func start(isUp: Bool = true) throws {
            machine.input(at: now) { engine, now in engine.started(NetworkInterface(isUp: isUp), at: now) }
            try run()
        }

        func create(_ title: String) throws -> RecordID {
            let content = NoteContent(title: title, text: nil, date: "2026-01-01T00:00:00.000Z").encoded
            let id = try machine.change(at: now) { engine, now in try engine.create(content, at: now) }
            try run(isUserChange: true)
            return id
        }

        func connectLast() throws {
            machine.process(.connected(try #require(connects.last)), at: now)
            try run()
        }

        func respond(_ status: String, _ body: String, isNotesServer: Bool = true) throws {
            let marker =
                isNotesServer ? "Slowlane-Notes: 1\r\nContent-Type: application/json" : "Content-Type: text/html"
            let text = "HTTP/1.1 \(status)\r\n\(marker)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            machine.process(.received(ByteBuffer(string: text), try #require(writes.last).id), at: now)
            try run()
        }

        func advance() throws {
            now = max(now, try #require(machine.nextDeadline))
            machine.process(.deadline, at: now)
            try run()
        }

        /// Starts, connects, and responds to the first request with an empty index.
        func settle() throws {
            try start()
            try connectLast()
            try respond("200 OK", "[]")
            log = []
        }

        var titles: [String?] { machine.engine.sync.rows.map { NoteContent($0.content).title } }
    }

    @Test func aChangeIsCommittedBeforeItIsSent() throws {
        let driver = try Driver()
        try driver.settle()
        _ = try driver.create("Milk")
        let sent = try #require(driver.log.firstIndex(of: "sent POST /api/notes/"))
        // The change, and then its attempt.
        #expect(driver.log[..<sent] == ["commit", "commit"])
        let request = try #require(driver.writes.last).text
        #expect(request.contains("Authorization: Basic YWRhOnNlY3JldA==\r\n"))
        #expect(request.contains("Host: 127.0.0.1:8000\r\n"))
        #expect(request.contains("Idempotency-Key: "))
    }

    @Test func aChangeThatCannotBeCommittedIsUndoneAndNothingIsSent() throws {
        let driver = try Driver()
        try driver.settle()
        driver.isDiskFull = true
        _ = try driver.create("Milk")
        #expect(driver.log == ["commit fails"])
        #expect(driver.titles.isEmpty)
        driver.isDiskFull = false
        _ = try driver.create("Bread")
        #expect(driver.titles == ["Bread"])
        #expect(try driver.store.load().records.map { NoteContent($0.mine).title } == ["Bread"])
    }

    @Test func aResponseThatCannotBeCommittedIsCommittedLater() throws {
        let driver = try Driver()
        try driver.settle()
        let id = try driver.create("Milk")
        driver.isDiskFull = true
        driver.log = []
        let note =
            #"{"uuid":"\#(id.text)","revision":"1-a","date":"2026-01-01T00:00:00.000Z","title":"Milk","text":null}"#
        try driver.respond("201 Created", note)
        #expect(driver.log == ["responded 201", "commit fails", "reported: the disk is full"])
        let requests = driver.writes.count
        for _ in 0..<5 { try driver.advance() }
        #expect(driver.writes.count == requests, "nothing is sent while commits fail")
        #expect(driver.log.filter { $0 == "reported: the disk is full" }.count == 1)
        driver.isDiskFull = false
        try driver.advance()
        #expect(driver.log.last == "recovered")
        #expect(driver.machine.engine.status.outbox == 0)
        #expect(try driver.store.load().entries.isEmpty)
    }

    /// Without a delay, the driver's timer would fire again and again while the disk is full.
    @Test func aFailedCommitIsRetriedAfterGrowingDelays() throws {
        let driver = try Driver()
        try driver.settle()
        let id = try driver.create("Milk")
        driver.isDiskFull = true
        let note =
            #"{"uuid":"\#(id.text)","revision":"1-a","date":"2026-01-01T00:00:00.000Z","title":"Milk","text":null}"#
        try driver.respond("201 Created", note)
        driver.log = []
        var times = [driver.now]
        while driver.now < Instant.start + .seconds(600) {
            let count = driver.log.filter { $0 == "commit fails" }.count
            try driver.advance()
            if driver.log.filter({ $0 == "commit fails" }).count > count { times.append(driver.now) }
        }
        for (earlier, later) in zip(times, times.dropFirst()) { #expect(later - earlier >= .milliseconds(500)) }
        #expect(times.count <= SyncPolicy().attemptsMax(duringOutage: .seconds(600)))
    }

    @Test func failedConnectionsAreRetriedAsThePolicySays() throws {
        let driver = try Driver()
        try driver.start()
        #expect(driver.log == ["sent GET /api/notes/", "connect"])
        var failures = 0
        while driver.now < Instant.start + .seconds(600) {
            if driver.connects.count > failures {
                failures += 1
                driver.machine.process(.connectFailed(try #require(driver.connects.last), .refused), at: driver.now)
                try driver.run()
            } else {
                try driver.advance()
            }
        }
        #expect(driver.log.filter { $0 == "failed: connection refused" }.count == failures)
        #expect(failures >= 10 && failures <= SyncPolicy().attemptsMax(duringOutage: .seconds(600)))
    }

    @Test func nothingIsSentWhileTheInterfaceIsDown() throws {
        let driver = try Driver()
        try driver.start(isUp: false)
        _ = try driver.create("Milk")
        #expect(driver.log == ["commit"])
        #expect(driver.machine.nextDeadline == nil)
        driver.machine.change(at: driver.now) { engine, now in
            engine.interfaceChanged(NetworkInterface(isUp: true), at: now)
        }
        try driver.run()
        if !driver.log.contains("connect") { try driver.advance() }
        #expect(driver.log.contains("connect"))
        #expect(driver.now <= Instant.start + SyncPolicy().recoverySpread)
    }

    @Test func aPeerThatIsNotANotesServerShowsInTheStatus() throws {
        let driver = try Driver()
        try driver.start()
        try driver.connectLast()
        #expect(driver.machine.engine.status.foreignServer == nil)
        try driver.respond("200 OK", "<html></html>", isNotesServer: false)
        let foreign = try #require(driver.machine.engine.status.foreignServer)
        #expect(foreign == ForeignServerError(status: 200, contentType: "text/html", expected: "notes server"))
        #expect(driver.machine.engine.status.pauseReason == nil)
    }

    @Test func bytesThatAreNotHTTPShowInTheStatus() throws {
        let driver = try Driver()
        try driver.start()
        try driver.connectLast()
        let id = try #require(driver.writes.last).id
        driver.machine.process(.received(ByteBuffer(string: "22"), id), at: driver.now)
        driver.machine.process(.received(ByteBuffer(string: "0 mail.example ESMTP\r\n"), id), at: driver.now)
        driver.machine.process(.closed(id, .fin), at: driver.now)
        try driver.run()
        #expect(
            driver.machine.engine.status.foreignServer
                == ForeignServerError(status: nil, contentType: nil, expected: "notes server"))
    }

    @Test(arguments: ["", "HT", "HTTP/1.1 200 OK\r\nSlowlane-Notes: 1\r\nContent-Length: 900\r\n\r\n["])
    func anIncompleteResponseSaysNothingAboutThePeer(_ text: String) throws {
        let driver = try Driver()
        try driver.start()
        try driver.connectLast()
        let id = try #require(driver.writes.last).id
        if !text.isEmpty { driver.machine.process(.received(ByteBuffer(string: text), id), at: driver.now) }
        driver.machine.process(.closed(id, .fin), at: driver.now)
        try driver.run()
        #expect(driver.machine.engine.status.foreignServer == nil)
        #expect(driver.machine.nextDeadline != nil)
    }
}
