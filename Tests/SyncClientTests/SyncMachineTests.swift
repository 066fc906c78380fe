import Determinism
import HTTPWire
import NIOCore
import SyncEngine
import SyncStore
import TestSupport
import Testing

@testable import SyncClient

/// The machine's decisions, without sockets: each test plays the driver.
@Suite struct SyncMachineTests {
    /// A driver in virtual time: commits succeed unless ``isDiskFull``, and the test opens connections.
    private final class Driver {
        var machine = SyncMachine(
            engine: SyncEngine(seed: 1), host: "127.0.0.1:8000", authorization: "Basic YWRhOnNlY3JldA==")
        var now = Instant.start
        let store: SyncStore
        var log: [String] = []
        var writes: [(id: HTTPConnectionID, text: String)] = []
        var connects: [HTTPConnectionID] = []
        var isDiskFull = false

        init() throws { store = try SyncStore(path: nil) }

        /// Carries out all actions and logs them.
        func run() throws {
            while let action = machine.takeAction() {
                switch action {
                case .commit(let change):
                    log.append(isDiskFull ? "commit fails" : "commit")
                    if isDiskFull {
                        machine.commitFailed(try Self.diskFull(), at: now)
                    } else {
                        try store.commit(change)
                        machine.committed(at: now)
                    }
                case .connect(let id):
                    log.append("connect")
                    connects.append(id)
                case .write(let id, let bytes):
                    let text = String(buffer: bytes)
                    log.append("write \(text.prefix { $0 != " " })")
                    writes.append((id, text))
                    machine.written(bytes.readableBytes, on: id, at: now)
                case .close: log.append("close")
                case .report(.view): break
                case .report(.sent(_, let method, let target)): log.append("sent \(method) \(target)")
                case .report(.responded(_, let status)): log.append("responded \(status)")
                case .report(.failed(_, let reason)): log.append("failed: \(reason)")
                case .report(.commitFailed): log.append("reported")
                }
            }
        }

        /// Returns the error of a store that cannot be opened: the machine does not look at its kind.
        private static func diskFull() throws -> SyncStoreError {
            do {
                _ = try SyncStore(path: "/nowhere/none/notes.db")
                throw CancellationError()
            } catch let error as SyncStoreError {
                return error
            }
        }

        func start() throws {
            machine.started(isOnline: true, at: now)
            try run()
        }

        func create(_ title: String) throws -> String {
            let now = now
            let uuid = machine.change(at: now) { engine, now in
                engine.create(title: title, text: nil, date: "2026-01-01T00:00:00.000Z", at: now)
            }
            try run()
            return uuid
        }

        func connectLast() throws {
            machine.connected(try #require(connects.last), at: now)
            try run()
        }

        func respond(_ status: String, _ body: String, isNotesServer: Bool = true) throws {
            let marker =
                isNotesServer ? "Slowlane-Notes: 1\r\nContent-Type: application/json" : "Content-Type: text/html"
            let text = "HTTP/1.1 \(status)\r\n\(marker)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            machine.received(ByteBuffer(string: text), on: try #require(writes.last).id, at: now)
            try run()
        }

        func advance() throws {
            now = max(now, try #require(machine.nextDeadline))
            machine.advance(to: now)
            try run()
        }

        /// Starts, connects, and responds to the first request with an empty index.
        func settle() throws {
            try start()
            try connectLast()
            try respond("200 OK", "[]")
            log = []
        }
    }

    @Test func aChangeIsCommittedBeforeItIsSent() throws {
        let driver = try Driver()
        try driver.settle()
        _ = try driver.create("Milk")
        #expect(driver.log == ["commit", "sent POST /api/notes/", "write POST"])
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
        #expect(driver.log == ["commit fails", "reported"])
        #expect(driver.machine.engine.view.rows.isEmpty)
        driver.isDiskFull = false
        _ = try driver.create("Bread")
        #expect(driver.machine.engine.view.rows.map(\.title) == ["Bread"])
        #expect(try driver.store.load().notes.map(\.mine.title) == ["Bread"])
    }

    @Test func aResponseThatCannotBeCommittedIsTreatedAsLost() throws {
        let driver = try Driver()
        try driver.settle()
        let uuid = try driver.create("Milk")
        driver.isDiskFull = true
        driver.log = []
        let note = #"{"uuid":"\#(uuid)","revision":"1-a","date":"2026-01-01T00:00:00.000Z","title":"Milk","text":null}"#
        try driver.respond("201 Created", note)
        #expect(driver.log == ["responded 201", "commit fails", "reported"])
        #expect(driver.machine.engine.view.outbox == 1)
        // The operation is repeated with the same key.
        driver.isDiskFull = false
        let first = try #require(driver.writes.last).text
        try driver.advance()
        let second = try #require(driver.writes.last).text
        #expect(driver.writes.count == 3)
        #expect(first == second)
        try driver.respond("200 OK", note)
        #expect(driver.machine.engine.view.outbox == 0)
        #expect(driver.machine.status.isSettled)
    }

    /// Without a delay, the driver's timer would fire again and again while the disk is full.
    @Test func aFailedCommitIsRetriedAfterADelay() throws {
        let driver = try Driver()
        try driver.settle()
        _ = try driver.create("Milk")
        // The attempt fails; the next one has to be committed first.
        driver.machine.closed(try #require(driver.writes.last).id, how: .reset, at: driver.now)
        try driver.run()
        driver.isDiskFull = true
        driver.log = []
        var times: [Instant] = []
        for _ in 0..<5 {
            try driver.advance()
            times.append(driver.now)
        }
        #expect(driver.log.filter { $0 == "commit fails" }.count == 5)
        for (earlier, later) in zip(times, times.dropFirst()) {
            #expect(later - earlier >= SyncMachine.commitRetryDelay)
        }
    }

    @Test func aFailedConnectionIsRetriedAtTheEngineDeadline() throws {
        let driver = try Driver()
        try driver.start()
        #expect(driver.log == ["sent GET /api/notes-uuids/", "connect"])
        driver.machine.connectFailed(try #require(driver.connects.last), reason: .refused, at: driver.now)
        try driver.run()
        #expect(driver.log.count == 3)
        let deadline = try #require(driver.machine.nextDeadline)
        #expect(deadline - driver.now >= .milliseconds(500) && deadline - driver.now <= .seconds(1))
        try driver.advance()
        #expect(driver.log.suffix(2) == ["sent GET /api/notes-uuids/", "connect"])
    }

    @Test func aConnectionThatIsNeverEstablishedTimesOut() throws {
        let driver = try Driver()
        try driver.start()
        #expect(driver.machine.nextDeadline == Instant.start + .seconds(10))
        try driver.advance()
        #expect(driver.log.contains("close"))
        #expect(driver.machine.status.isSettled == false)
    }

    @Test func nothingIsSentWhileTheInterfaceIsDown() throws {
        let driver = try Driver()
        driver.machine.started(isOnline: false, at: driver.now)
        try driver.run()
        _ = try driver.create("Milk")
        #expect(driver.log == ["commit"])
        #expect(driver.machine.nextDeadline == nil)
        driver.machine.change(at: driver.now) { engine, now in engine.interfaceChanged(isUp: true, at: now) }
        try driver.run()
        #expect(driver.log.contains("connect"))
    }

    @Test func aPeerThatIsNotANotesServerShowsInTheStatus() throws {
        let driver = try Driver()
        try driver.start()
        try driver.connectLast()
        #expect(driver.machine.status.foreignServer == nil)
        try driver.respond("200 OK", "<html></html>", isNotesServer: false)
        #expect(driver.machine.status.foreignServer == ForeignServerError(status: 200, contentType: "text/html"))
        #expect(driver.machine.status.pauseReason == nil)
    }

    @Test func bytesThatAreNotHTTPShowInTheStatus() throws {
        let driver = try Driver()
        try driver.start()
        try driver.connectLast()
        let id = try #require(driver.writes.last).id
        driver.machine.received(ByteBuffer(string: "22"), on: id, at: driver.now)
        driver.machine.received(ByteBuffer(string: "0 mail.example ESMTP\r\n"), on: id, at: driver.now)
        driver.machine.closed(id, how: .fin, at: driver.now)
        try driver.run()
        #expect(driver.machine.status.foreignServer == ForeignServerError(status: nil, contentType: nil))
    }

    @Test(arguments: ["", "HT", "HTTP/1.1 200 OK\r\nSlowlane-Notes: 1\r\nContent-Length: 900\r\n\r\n["])
    func anIncompleteResponseSaysNothingAboutThePeer(_ text: String) throws {
        let driver = try Driver()
        try driver.start()
        try driver.connectLast()
        let id = try #require(driver.writes.last).id
        if !text.isEmpty { driver.machine.received(ByteBuffer(string: text), on: id, at: driver.now) }
        driver.machine.closed(id, how: .fin, at: driver.now)
        try driver.run()
        #expect(driver.machine.status.foreignServer == nil)
        #expect(driver.machine.nextDeadline != nil)
    }
}
