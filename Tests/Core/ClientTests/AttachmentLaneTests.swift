import Client
import Determinism
import HTTPTypes
import NotesContract
import NotesService
import TestSupport
import Testing

/// The lane of attachments against the service, in virtual time: kills, cuts, and attachments that cannot be transferred.
@Suite struct AttachmentLaneTests {
    /// What happens to a request and its response.
    private enum Fate { case delivered, notSent, requestCut, responseCut, status(Int, retryAfter: Int?), otherHistory }

    /// A client with its durable state, a network and a server.
    private struct Device {
        let server: AttachmentServer
        let seed: UInt64
        var lane: AttachmentLane
        /// What survives a kill.
        var rows: [Int: LocalAttachment] = [:]
        var contents: [Int: [UInt8]] = [:]
        var parts: [Int: [UInt8]] = [:]
        var gate = AttachmentLane.Gate(isUsable: true, isOpen: true, history: "0011223344556677")
        var now = Instant.start
        var steps = 0
        /// The step at which the process is killed, before or after its action.
        var kill: (step: Int, isAfter: Bool)?
        var fate: (AttachmentRequest) -> Fate = { _ in .delivered }
        /// For each path the bytes that a response has acknowledged.
        var acknowledged: [String: Int] = [:]
        var log: [String] = []
        var isDiskFull = false
        /// The number of bytes that were written to a download again.
        var rewritten = 0

        init(_ server: AttachmentServer, seed: UInt64 = 1) {
            self.server = server
            self.seed = seed
            lane = AttachmentLane(policy: AttachmentLaneTests.policy, seed: seed)
        }

        mutating func attach(_ name: String, _ bytes: [UInt8]) throws {
            let id = rows.count + 1
            contents[id] = bytes
            rows[id] = LocalAttachment(
                id: id, record: RecordID(AttachmentServer.note), name: try #require(AttachmentName(name)),
                direction: .upload,
                size: bytes.count, digest: AttachmentDigest(of: bytes))
            load()
        }

        mutating func fetch(_ name: String) throws {
            let id = rows.count + 1
            rows[id] = LocalAttachment(
                id: id, record: RecordID(AttachmentServer.note), name: try #require(AttachmentName(name)),
                direction: .download)
            load()
        }

        mutating func load() { lane.attachmentsChanged(rows.values.sorted { $0.id < $1.id }) }

        mutating func restart() {
            kill = nil
            lane = AttachmentLane(
                restoring: rows.values.sorted { $0.id < $1.id }, policy: AttachmentLaneTests.policy,
                seed: seed &+ UInt64(steps))
        }

        /// Runs until nothing is left to do, or a time.
        mutating func run(until end: Instant = .never) {
            for _ in 0..<20_000 {
                lane.proceed(gate, at: now) { $0 == RecordID(AttachmentServer.note) }
                if let action = lane.takeAction() {
                    steps += 1
                    if let kill, kill.step == steps, !kill.isAfter {
                        restart()
                        continue
                    }
                    execute(action)
                    if let kill, kill.step == steps { restart() }
                    continue
                }
                if lane.isSettled { return }
                guard let deadline = lane.nextDeadline, deadline < end else { return }
                now = max(now, deadline)
            }
            Issue.record("the lane does not settle: \(log.suffix(8))")
        }

        private mutating func execute(_ action: AttachmentLane.Action) {
            switch action {
            case .store(.commit(let states)):
                if isDiskFull {
                    log.append("commit fails")
                    return lane.commitFailed(at: now)
                }
                for state in states where rows[state.id] != nil { rows[state.id] = state }
                lane.committed(at: now)
            case .store(.read(let attachment, let range)):
                guard let bytes = contents[attachment.id] else {
                    return lane.readFailed("no such file", of: attachment.id, range: range, at: now)
                }
                lane.bytesRead(Array(bytes[range]), of: attachment.id, range: range, at: now)
            case .store(.hashPart(let attachment)):
                var hasher = SHA256Hasher()
                hasher.update(parts[attachment.id] ?? [])
                lane.partHashed(hasher, of: attachment.id, at: now)
            case .store(.write(let bytes, let offset, let attachment)):
                var part = parts[attachment.id] ?? []
                rewritten += part.count - offset
                part.replaceSubrange(offset..<part.count, with: bytes)
                parts[attachment.id] = part
            case .store(.discard(let attachment)): parts[attachment.id] = nil
            case .send(let number, let request): send(request, number)
            case .cancel: log.append("cancel")
            case .credentialsRejected(let status): log.append("rejected \(status)")
            case .historyDiffers: log.append("history")
            case .report: break
            }
        }

        private mutating func send(_ request: AttachmentRequest, _ number: Int) {
            let name = request.target.split(separator: "/").last.map(String.init) ?? ""
            log.append("\(request.method) \(name)")
            if !request.body.isEmpty {
                #expect(request.range.lowerBound >= acknowledged[name] ?? 0, "\(name) is sent again, seed \(seed)")
            }
            // A commit precedes the first request, so that the next run asks for the offset.
            #expect(rows.values.contains { $0.name.description == name && $0.state == .sending })
            let fate = fate(request)
            switch fate {
            case .notSent: return lane.requestFailed(.notSent, to: number, at: now)
            case .requestCut: return lane.requestFailed(.outcomeUnknown, to: number, at: now)
            case .status(let status, let seconds):
                let delay = seconds.map { [AttachmentRequest.Field("Retry-After", String($0))] } ?? []
                return lane.responseReceived(
                    AttachmentResponse(status: status, fields: [.init("Slowlane-Notes", "1")] + delay), body: [],
                    to: number, at: now)
            case .otherHistory:
                return lane.responseReceived(
                    AttachmentResponse(
                        status: 404, fields: [.init("Slowlane-Notes", "1"), .init("Slowlane-History", "ffff")]),
                    body: [], to: number, at: now)
            case .delivered, .responseCut: break
            }
            let response = server.transfer(
                request.method, request.target, request.body, with: request.fields.map { ($0.name, $0.value) })
            if case .responseCut = fate { return lane.requestFailed(.outcomeUnknown, to: number, at: now) }
            // The lane compares histories; this device's is the server's.
            var fields = response.head.headerFields.map { AttachmentRequest.Field($0.name.rawName, $0.value) }
            fields.removeAll { $0.name == NotesHTTP.historyName }
            if let offset = fields.first(where: { $0.name == "Upload-Offset" }).flatMap({ Int($0.value) }) {
                acknowledged[name] = max(acknowledged[name] ?? 0, offset)
            }
            lane.responseReceived(
                AttachmentResponse(status: response.status, fields: fields), body: response.body, to: number, at: now)
        }

        func stored(_ name: String) -> [UInt8] {
            server.transfer("GET", "/api/notes/\(AttachmentServer.note)/attachments/\(name)").body
        }
    }

    private static let policy = AttachmentPolicy(pieceFirst: 40, pieceMin: 10, pieceMax: 100, downloadPiece: 64)

    private static func bytes(_ count: Int, _ seed: UInt64) -> [UInt8] {
        var random = RandomStream(seed: seed, "test/bytes")
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    private static func clear(_ server: AttachmentServer, _ names: String...) {
        for name in names { server.transfer("DELETE", "/api/notes/\(AttachmentServer.note)/attachments/\(name)") }
    }

    @Test func aKillBeforeOrAfterAnyActionOfAnUploadLosesNothing() throws {
        let server = try AttachmentServer()
        let contents = ["a": Self.bytes(300, 1), "b": Self.bytes(130, 2), "empty": []]
        var (steps, step) = (Int.max, 1)
        while step <= steps {
            for isAfter in [false, true] {
                Self.clear(server, "a", "b", "empty")
                var device = Device(server)
                for (name, bytes) in contents.sorted(by: { $0.key < $1.key }) { try device.attach(name, bytes) }
                device.kill = (step, isAfter)
                device.run()
                for (name, bytes) in contents { #expect(device.stored(name) == bytes, "\(name), kill at \(step)") }
                #expect(device.rows.values.allSatisfy { $0.state == .done }, "kill at \(step)")
                if device.kill != nil { steps = device.steps }
            }
            step += 1
        }
        #expect(step > 20)
    }

    @Test func everyUploadArrivesWhateverIsCut() throws {
        let server = try AttachmentServer()
        for seed in randomSeeds(60) {
            var random = RandomStream(seed: seed, "test/network")
            let bytes = Self.bytes(Int(random.integer(below: 2000)), seed)
            Self.clear(server, "a", "b")
            var device = Device(server, seed: seed)
            try device.attach("a", bytes)
            try device.attach("b", bytes.reversed())
            let badPercent = random.integer(below: 60)
            var network = RandomStream(seed: seed, "test/fates")
            device.kill = (1 + Int(random.integer(below: 60)), random.integer(below: 2) == 0)
            device.fate = { _ in
                guard network.integer(below: 100) < badPercent else { return .delivered }
                return [Fate.notSent, .requestCut, .responseCut][Int(network.integer(below: 3))]
            }
            device.run()
            #expect(device.stored("a") == bytes, "seed \(seed)")
            #expect(device.stored("b") == bytes.reversed(), "seed \(seed)")
        }
    }

    @Test func aKillBeforeOrAfterAnyActionOfADownloadLosesNothing() throws {
        let server = try AttachmentServer()
        let bytes = Self.bytes(500, 3)
        var uploader = Device(server)
        try uploader.attach("a", bytes)
        try uploader.attach("empty", [])
        uploader.run()
        var (steps, step) = (Int.max, 1)
        while step <= steps {
            for isAfter in [false, true] {
                var device = Device(server)
                try device.fetch("a")
                try device.fetch("empty")
                device.kill = (step, isAfter)
                device.run()
                #expect(device.rows.values.allSatisfy { $0.state == .done }, "kill at \(step)")
                #expect(device.parts[1] == bytes, "kill at \(step)")
                #expect(device.rows[1]?.digest == AttachmentDigest(of: bytes))
                #expect(device.rewritten == 0, "kill at \(step)")
                if device.kill != nil { steps = device.steps }
            }
            step += 1
        }
        #expect(step > 10)
    }

    @Test func anAttachmentThatIsAlwaysCutDoesNotDelayTheOthers() throws {
        let server = try AttachmentServer()
        var device = Device(server)
        try device.attach("poison", Self.bytes(300, 1))
        for name in ["a", "b", "c"] { try device.attach(name, Self.bytes(250, 2)) }
        device.fate = { request in request.target.hasSuffix("poison") ? .requestCut : .delivered }
        device.run(until: .start + .seconds(5))
        #expect(["a", "b", "c"].allSatisfy { device.stored($0) == Self.bytes(250, 2) })
        device.run(until: .start + .seconds(600))
        #expect(device.rows[1]?.state == .sending)
        // Its delays grow: fewer requests than one in 20 s.
        #expect((8...40).contains(device.log.count { $0.hasSuffix("poison") }))
        device.fate = { _ in .delivered }
        device.run()
        #expect(device.stored("poison") == Self.bytes(300, 1))
    }

    @Test func aRejectedAttachmentIsParkedUntilItIsRequestedAgain() throws {
        let server = try AttachmentServer()
        var device = Device(server)
        try device.attach("a", [1, 2, 3])
        try device.attach("b", [4])
        device.fate = { request in request.target.hasSuffix("a") ? .status(400, retryAfter: nil) : .delivered }
        device.run()
        #expect(device.rows[1]?.state == .parked("the server rejects the request (status 400)"))
        #expect(device.rows[2]?.state == .done)
        let requests = device.log.count
        device.gate.rounds += 1
        device.run()
        #expect(device.log.count == requests)
        device.fate = { _ in .delivered }
        device.rows[1]?.state = .waiting
        device.load()
        device.run()
        #expect(device.rows[1]?.state == .done)
        #expect(device.stored("a") == [1, 2, 3])
    }

    @Test func rejectedCredentialsStopTheLaneAndParkNothing() throws {
        let server = try AttachmentServer()
        var device = Device(server)
        try device.attach("a", [1, 2, 3])
        try device.attach("b", [4])
        device.fate = { _ in .status(401, retryAfter: nil) }
        device.run(until: .start + .seconds(600))
        #expect(device.log == ["PUT a", "rejected 401"])
        device.fate = { _ in .delivered }
        device.gate.rounds += 1
        device.run()
        #expect(device.rows.values.allSatisfy { $0.state == .done })
    }

    @Test func anotherHistoryIsNotTakenForALossOfTheNote() throws {
        let server = try AttachmentServer()
        var device = Device(server)
        try device.attach("a", [1, 2, 3])
        device.fate = { _ in .otherHistory }
        device.run(until: .start + .milliseconds(100))
        #expect(device.log == ["PUT a", "history"])
        #expect(device.rows[1]?.state == .sending)
    }

    @Test func requestsObserveTheGateAndRetryAfter() throws {
        let server = try AttachmentServer()
        var device = Device(server)
        try device.attach("a", Self.bytes(300, 1))
        try device.attach("b", [4])
        device.gate.isOpen = false
        device.run()
        #expect(device.log.isEmpty && !device.lane.isSettled)
        device.gate.isUsable = false
        device.run()
        // An interface that the policy does not allow is not waited for.
        #expect(device.lane.isSettled)
        (device.gate.isUsable, device.gate.isOpen) = (true, true)
        device.gate.floor = .start + .seconds(20)
        device.run(until: .start + .seconds(20))
        #expect(device.log.isEmpty)
        device.fate = { _ in .status(503, retryAfter: 300) }
        device.run(until: .start + .seconds(100))
        #expect(device.log == ["PUT a"])
        device.fate = { _ in .delivered }
        device.run()
        #expect(device.now >= .start + .seconds(320))
        #expect(device.rows.values.allSatisfy { $0.state == .done })
    }

    @Test func nothingIsSentWhileAStateCannotBeCommitted() throws {
        let server = try AttachmentServer()
        var device = Device(server)
        try device.attach("a", Self.bytes(300, 1))
        device.isDiskFull = true
        device.run(until: .start + .seconds(60))
        #expect(Set(device.log) == ["commit fails"])
        #expect((3...12).contains(device.log.count))
        device.isDiskFull = false
        device.run()
        #expect(device.stored("a") == Self.bytes(300, 1))
    }

    @Test func theAttachmentsOfARemovedRecordAreForgotten() throws {
        let server = try AttachmentServer()
        var device = Device(server)
        try device.attach("a", Self.bytes(300, 1))
        device.fate = { _ in .requestCut }
        device.run(until: .start + .seconds(1))
        device.lane.recordsRemoved([RecordID(AttachmentServer.note)])
        device.run()
        #expect(device.lane.isSettled && device.lane.attachments.isEmpty && device.lane.nextDeadline == nil)
    }

    @Test func anAttachmentWaitsUntilTheServerHasItsNote() throws {
        var lane = AttachmentLane(
            restoring: [
                LocalAttachment(
                    id: 1, record: "new", name: try #require(AttachmentName("a")), direction: .upload, size: 1,
                    digest: AttachmentDigest(of: [1]))
            ], seed: 1)
        let gate = AttachmentLane.Gate(isUsable: true, isOpen: true)
        lane.proceed(gate, at: .start) { _ in false }
        #expect(lane.takeAction() == nil)
        #expect(lane.isSettled && lane.nextDeadline == nil)
        lane.proceed(gate, at: .start) { _ in true }
        guard case .store(.commit(let rows))? = lane.takeAction() else {
            Issue.record("no commit")
            return
        }
        #expect(rows.map(\.state) == [.sending])
    }
}

/// The notes service with one note, and shorthands for requests to its attachments.
private struct AttachmentServer {
    static let note = "00000000-0000-4000-8000-000000000001"

    struct Response {
        let status: Int
        let body: [UInt8]
        let head: HTTPResponse
    }

    private let service: NotesService

    init() throws {
        service = NotesService(
            store: try NotesStore(path: nil), users: ["ada": "secret"], now: { 1_772_352_000_000 }, monotonicNow: { 0 })
        let created = transfer(
            "POST", "/api/notes/", Array(#"{"uuid":"\#(Self.note)","title":"Milk","text":"two"}"#.utf8))
        try #require(created.status == 201)
    }

    @discardableResult
    func transfer(
        _ method: String, _ path: String, _ body: [UInt8] = [], with fields: [(String, String)] = []
    ) -> Response {
        var request = HTTPRequest(
            method: .init(rawValue: method) ?? .get, scheme: "http", authority: "localhost:8000", path: path)
        // ada:secret
        request.headerFields[.authorization] = "Basic YWRhOnNlY3JldA=="
        for (name, value) in fields {
            if let name = HTTPField.Name(name) { request.headerFields[name] = value }
        }
        let response = service.respond(to: request, body: body)
        return Response(status: response.head.status.code, body: Self.bytes(of: response.body), head: response.head)
    }

    private static func bytes(of body: NotesService.Body) -> [UInt8] {
        guard case .bytes(let parts) = body else { return Array(((try? body.text) ?? "incomplete").utf8) }
        var whole: [UInt8] = []
        do { while let part = try parts.next() { whole += part } } catch { return Array("aborted".utf8) }
        return whole
    }
}
