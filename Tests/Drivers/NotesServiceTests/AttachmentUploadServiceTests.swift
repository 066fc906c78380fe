import Client
import Determinism
import HTTPTypes
import NotesContract
import NotesService
import TestSupport
import Testing

/// The upload machine against the service, in virtual time, with random cuts.
@Suite struct AttachmentUploadServiceTests {
    /// What happens to a request and its response.
    private enum Fate: Int64, CaseIterable {
        case delivered
        /// The connection cannot be made.
        case notSent
        /// The request is cut, so that the server discards it.
        case requestCut
        /// The request is executed and its response is cut.
        case responseCut
        /// The request is executed after the client has given up, before or after a later request.
        case late
        /// A gateway responds in place of the server, which has executed the request.
        case gatewayError
        /// The server is overloaded and has not executed the request.
        case overloaded
        /// A captive portal responds with its login page.
        case portal
        /// The body is damaged on the way.
        case damaged
    }

    /// A client with one upload, a network and a server.
    private struct World {
        let fixture: Fixture
        let bytes: [UInt8]
        let start: (Bool) -> AttachmentUpload
        var upload: AttachmentUpload
        /// The probability that the client is killed and restarted while it waits.
        var killProbability = 0.0
        var kills = 0
        var random: RandomStream
        var now = Instant.start
        /// How often each byte was sent, and how often a request with it was cut or rejected.
        var sent: [Int]
        var cut: [Int]
        var delayed: [AttachmentRequest] = []
        /// Whether the server may have another offset than the client expects, because a request was late.
        var mayConflict = false
        var requests = 0

        init(seed: UInt64, bytes: [UInt8], policy: AttachmentPolicy, fixture: Fixture, isResumed: Bool = false) throws {
            self.fixture = fixture
            self.bytes = bytes
            random = RandomStream(seed: seed, "test/network")
            let name = try #require(AttachmentName("photo.jpg"))
            start = { isResumed in
                AttachmentUpload(
                    uuid: Fixture.n1, name: name, length: bytes.count, digest: AttachmentDigest(of: bytes),
                    isResumed: isResumed, policy: policy, seed: seed)
            }
            upload = start(isResumed)
            sent = Array(repeating: 0, count: bytes.count)
            cut = sent
        }

        /// Sends a request to the service.
        func execute(_ request: AttachmentRequest, damaged: Bool = false) -> AttachmentResponse {
            var body = request.body
            if damaged && !body.isEmpty { body[body.count / 2] ^= 0x40 }
            let response = fixture.transfer(
                request.method, request.target, body, with: request.fields.map { ($0.name, $0.value) })
            return AttachmentResponse(
                status: response.status,
                fields: response.head.headerFields.map { .init($0.name.rawName, $0.value) })
        }

        mutating func deliver(_ request: AttachmentRequest, _ fate: Fate) {
            requests += 1
            for index in request.range where !request.body.isEmpty {
                sent[index] += 1
                if fate != .delivered { cut[index] += 1 }
            }
            let order = random.integer(below: 3)
            if order == 0 { executeDelayed() }
            defer { if order == 1 { executeDelayed() } }
            let id = request.id
            switch fate {
            case .delivered:
                let response = execute(request)
                if response.status == 409 {
                    #expect(mayConflict, "a request at a wrong offset")
                    for index in request.range { cut[index] += 1 }
                }
                upload.responseReceived(response, to: id, at: now)
            case .damaged:
                upload.responseReceived(execute(request, damaged: true), to: id, at: now)
            case .notSent: upload.requestFailed(.notSent, to: id, at: now)
            case .requestCut: upload.requestFailed(.outcomeUnknown, to: id, at: now)
            case .responseCut:
                _ = execute(request)
                upload.requestFailed(.outcomeUnknown, to: id, at: now)
            case .late:
                delayed.append(request)
                mayConflict = true
                upload.requestFailed(.outcomeUnknown, to: id, at: now)
            case .gatewayError:
                _ = execute(request)
                respond(504, to: id, [.init("Slowlane-Notes", "1")])
            case .overloaded: respond(503, to: id, [.init("Slowlane-Notes", "1"), .init("Retry-After", "7")])
            case .portal: respond(200, to: id, [.init("Content-Type", "text/html")])
            }
        }

        private mutating func executeDelayed() {
            for old in delayed { _ = execute(old) }
            delayed = []
        }

        mutating func respond(_ status: Int, to id: Int, _ fields: [AttachmentRequest.Field]) {
            upload.responseReceived(AttachmentResponse(status: status, fields: fields), to: id, at: now)
        }

        /// Runs until the upload ends.
        mutating func run(_ fate: (inout RandomStream) -> Fate) throws -> AttachmentUpload.Action {
            for _ in 0..<20_000 {
                switch upload.takeAction() {
                case .read(let range): upload.bytesRead(Array(bytes[range]), of: range, at: now)
                case .send(let request):
                    now = now + .milliseconds(1 + random.integer(below: 500))
                    deliver(request, fate(&random))
                case .finished?: return .finished
                case .failed(let error)?: return .failed(error)
                case nil where random.bool(probability: killProbability):
                    kills += 1
                    upload = start(true)
                case nil:
                    let deadline = try #require(upload.nextDeadline)
                    #expect(deadline >= now)
                    now = max(now, deadline)
                    upload.advance(to: now)
                }
            }
            Issue.record("the upload does not end")
            return .failed(.uploadLost)
        }

        /// Each byte is sent once, and once more for each request with it that was cut or rejected.
        func expectNoNeedlessBytes(_ seed: UInt64) {
            let index = sent.indices.first { sent[$0] > 1 + cut[$0] }
            #expect(index == nil, "seed \(seed): byte \(index ?? 0) was sent \(sent[index ?? 0]) times")
        }
    }

    private static let small = AttachmentPolicy(pieceFirst: 256, pieceMin: 16, pieceMax: 1024)

    private static func bytes(_ count: Int64, _ random: inout RandomStream) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    @Test func everyUploadArrivesWhateverIsCut() throws {
        let fixture = try Fixture.withNote()
        let seeds = randomSeeds(200)
        var (worst, kills) = (0, 0)
        for seed in seeds {
            var random = RandomStream(seed: seed, "test/bytes")
            let bytes = Self.bytes(random.integer(below: 6000), &random)
            let badPercent = random.integer(below: 70)
            var world = try World(seed: seed, bytes: bytes, policy: Self.small, fixture: fixture)
            world.killProbability = 0.1
            // A damaged body ends the upload if it happens twice; other tests have it.
            let end = try world.run { random in
                guard random.integer(below: 100) < badPercent else { return .delivered }
                return Fate(rawValue: 1 + random.integer(below: Fate.damaged.rawValue - 1)) ?? .delivered
            }
            #expect(end == .finished, "seed \(seed): \(end)")
            #expect(fixture.transfer("GET").body == bytes, "seed \(seed)")
            world.expectNoNeedlessBytes(seed)
            worst = max(worst, world.requests)
            kills += world.kills
            fixture.transfer("DELETE")
        }
        // The cuts had an effect.
        #expect(worst > 50)
        #expect(kills > seeds.count / 10)
    }

    /// Each request of an upload in turn has each fate.
    @Test func aSingleCutAtEveryPointCostsOnePiece() throws {
        let fixture = try Fixture.withNote()
        var random = RandomStream(seed: 1, "test/bytes")
        let bytes = Self.bytes(5000, &random)
        for fate in [Fate.notSent, .requestCut, .responseCut, .late, .gatewayError, .overloaded, .portal, .damaged] {
            var position = 0
            while true {
                var world = try World(seed: 3, bytes: bytes, policy: Self.small, fixture: fixture)
                var count = 0
                var largest = 0
                let end = try world.run { _ in
                    defer { count += 1 }
                    return count == position ? fate : .delivered
                }
                let label = "\(fate) at \(position)"
                #expect(end == .finished, "\(label): \(end)")
                #expect(fixture.transfer("GET").body == bytes, "\(label)")
                largest = max(largest, world.sent.max() ?? 0)
                #expect(largest <= 2, "\(label)")
                if fate != .damaged { world.expectNoNeedlessBytes(3) }
                fixture.transfer("DELETE")
                position += 1
                if position >= count { break }
            }
            #expect(position >= 6, "\(fate)")
        }
    }

    @Test func aRestartOfTheClientContinuesTheUpload() throws {
        let fixture = try Fixture.withNote()
        var random = RandomStream(seed: 2, "test/bytes")
        for seed in 0..<100 as Range<UInt64> {
            let bytes = Self.bytes(1 + random.integer(below: 5000), &random)
            fixture.put(Array(bytes[..<Int(random.integer(below: Int64(bytes.count)))]), of: bytes)
            let received = fixture.transfer("HEAD").field("Upload-Offset").flatMap { Int($0) } ?? 0
            var world = try World(seed: seed, bytes: bytes, policy: Self.small, fixture: fixture, isResumed: true)
            #expect(try world.run { _ in .delivered } == .finished)
            #expect(fixture.transfer("GET").body == bytes)
            #expect(world.sent == bytes.indices.map { $0 < received ? 0 : 1 })
            fixture.transfer("DELETE")
        }
    }

    @Test func anAttachmentOfSeveralMiBArrivesInGrowingPieces() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(3_000_000)
        var world = try World(seed: 1, bytes: bytes, policy: AttachmentPolicy(), fixture: fixture)
        #expect(try world.run { _ in .delivered } == .finished)
        // 8 KiB, 32 KiB, 128 KiB, 512 KiB, and the rest in three requests of up to 1 MiB.
        #expect(world.requests == 7)
        #expect(fixture.transfer("GET").body == bytes)
        var again = try World(seed: 1, bytes: bytes, policy: AttachmentPolicy(), fixture: fixture, isResumed: true)
        #expect(try again.run { _ in .delivered } == .finished)
        #expect(again.requests == 1)
    }

    @Test func aSecondDamageParksTheUploadUntilARetry() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(1000)
        var world = try World(seed: 1, bytes: bytes, policy: Self.small, fixture: fixture)
        #expect(try world.run { _ in .damaged } == .failed(.digestMismatch))
        #expect(world.upload.error == .digestMismatch)
        #expect(world.sent.max() == 2)
        #expect(world.upload.nextDeadline == nil)
        #expect(fixture.transfer("HEAD").status == 404)
        world.upload.retry(at: world.now)
        #expect(try world.run { _ in .delivered } == .finished)
        #expect(fixture.transfer("GET").body == bytes)
    }

    @Test func aRestoredSnapshotMovesTheOffsetBackwards() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(4000)
        var world = try World(seed: 1, bytes: bytes, policy: Self.small, fixture: fixture)
        world.mayConflict = true
        let store = fixture.store
        var snapshot: NotesSnapshot?
        var count = 0
        let end = try world.run { _ in
            count += 1
            if count == 3 { snapshot = try? store.snapshot() }
            if count == 5, let snapshot { try? store.restore(snapshot) }
            return .delivered
        }
        #expect(end == .finished)
        #expect(fixture.transfer("GET").body == bytes)
        #expect(world.sent.max() == 2)
    }

    @Test func anotherContentUnderTheNameEndsTheUpload() throws {
        let fixture = try Fixture.withNote()
        fixture.put([1], of: [1, 2])
        for isResumed in [false, true] {
            var world = try World(
                seed: 1, bytes: Fixture.sample(2), policy: Self.small, fixture: fixture, isResumed: isResumed)
            world.mayConflict = true
            #expect(try world.run { _ in .delivered } == .failed(.nameTaken))
        }
        #expect(fixture.transfer("HEAD").field("Upload-Offset") == "1")
    }

    @Test func aDeletedNoteEndsTheUpload() throws {
        for contract in [APIContract.compat, .strict] {
            let fixture = try Fixture(contract)
            let revision = fixture.create()
            var world = try World(seed: 1, bytes: Fixture.sample(4000), policy: Self.small, fixture: fixture)
            var count = 0
            let end = try world.run { _ in
                count += 1
                if count == 3 { fixture.send("DELETE", "/api/notes/\(Fixture.n1)/?revision=\(revision)") }
                return .delivered
            }
            #expect(end == .failed(.noteMissing), "\(contract)")
        }
    }
}
