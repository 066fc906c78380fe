import Client
import Determinism
import HTTPTypes
import NotesContract
import NotesService
import Testing

/// The download machine against the service, in virtual time, with random cuts.
@Suite struct AttachmentDownloadServiceTests {
    /// A client with one download, a network and a server.
    private struct World {
        let fixture: Fixture
        var download: AttachmentDownload
        var random: RandomStream
        var now = Instant.start
        var file: [UInt8] = []
        var requests = 0
        /// The number of bytes that arrived, which is that of the attachment unless some arrive twice.
        var received = 0

        init(_ fixture: Fixture, seed: UInt64, resuming progress: AttachmentDownload.Progress? = nil) throws {
            self.fixture = fixture
            random = RandomStream(seed: seed, "test/network")
            download = AttachmentDownload(
                uuid: Fixture.n1, name: try #require(AttachmentName("photo.jpg")), resuming: progress, seed: seed)
        }

        /// Executes a request; `cut` is the number of bytes after which the response is cut, if it is.
        private mutating func execute(_ request: AttachmentRequest, cut: Int?, isDamaged: Bool) {
            requests += 1
            let response = fixture.transfer(
                request.method, request.target, with: request.fields.map { ($0.name, $0.value) })
            let head = AttachmentResponse(
                status: response.status, fields: response.head.headerFields.map { .init($0.name.rawName, $0.value) })
            download.headReceived(head, to: request.id, at: now)
            var body = response.body.prefix(cut ?? .max)
            if isDamaged, let first = body.indices.first { body[first] ^= 1 }
            while !body.isEmpty {
                let some = body.prefix(1 + Int(random.integer(below: 2000)))
                download.bytesReceived(Array(some), to: request.id, at: now)
                body = body.dropFirst(some.count)
            }
            if cut == nil {
                download.responseEnded(to: request.id, at: now)
            } else {
                download.requestFailed(to: request.id, at: now)
            }
        }

        /// Runs until the download ends.
        mutating func run(
            cut: (inout RandomStream) -> Int? = { _ in nil }, onWait: () -> Void = {},
            isDamaged: (Int) -> Bool = { _ in false }
        ) throws -> AttachmentDownload.Action {
            for _ in 0..<20_000 {
                switch download.takeAction() {
                case .send(let request)?: execute(request, cut: cut(&random), isDamaged: isDamaged(requests))
                case .write(let bytes, let offset)?:
                    #expect(offset == file.count)
                    file += bytes
                    received += bytes.count
                case .discard?: file = []
                case .finished?: return .finished
                case .failed(let error)?: return .failed(error)
                case nil:
                    onWait()
                    now = max(now, try #require(download.nextDeadline))
                    download.advance(to: now)
                }
            }
            Issue.record("the download does not end")
            return .failed(.uploadLost)
        }
    }

    @Test func everyDownloadArrivesWhateverIsCut() throws {
        let fixture = try Fixture.withNote()
        var resumed = 0
        for seed in 0..<300 as Range<UInt64> {
            var random = RandomStream(seed: seed, "test/bytes")
            let bytes = (0..<random.integer(below: 8000)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            fixture.put(bytes, of: bytes)
            var world = try World(fixture, seed: seed)
            let end = try world.run { random in
                random.integer(below: 3) == 0 ? nil : Int(random.integer(below: 2000))
            }
            #expect(end == .finished, "seed \(seed): \(end)")
            #expect(world.file == bytes, "seed \(seed)")
            #expect(world.received == bytes.count, "seed \(seed): bytes arrived twice")
            if world.requests > 1 { resumed += 1 }
            fixture.transfer("DELETE")
        }
        #expect(resumed > 100)
    }

    @Test func aRestartOfTheClientContinuesTheDownload() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(200_000)
        fixture.put(bytes, of: bytes)
        for count in [0, 1, 70_000, 199_999, 200_000] {
            var hasher = SHA256Hasher()
            hasher.update(bytes[..<count])
            let tag = try #require(fixture.transfer("HEAD").field("ETag"))
            let progress = AttachmentDownload.Progress(
                length: bytes.count, digest: AttachmentDigest(of: bytes), tag: tag, hasher: hasher)
            var world = try World(fixture, seed: 1, resuming: progress)
            world.file = Array(bytes[..<count])
            #expect(try world.run() == .finished)
            #expect(world.file == bytes)
            #expect(world.received == bytes.count - count)
        }
    }

    @Test func aChangedAttachmentStartsAgain() throws {
        let fixture = try Fixture.withNote()
        let old = Fixture.sample(5000)
        let new = Array(Fixture.sample(7000).reversed())
        fixture.put(old, of: old)
        var world = try World(fixture, seed: 1)
        var count = 0
        let end = try world.run { _ in
            count += 1
            return count == 1 ? 1000 : nil
        } onWait: {
            fixture.transfer("DELETE")
            fixture.put(new, of: new)
        }
        #expect(end == .finished)
        #expect(world.file == new)
        #expect(world.received == 8000)
    }

    @Test func aDamagedDownloadStartsAgainOnceAndThenStops() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(5000)
        fixture.put(bytes, of: bytes)
        var once = try World(fixture, seed: 1)
        #expect(try once.run(isDamaged: { $0 == 0 }) == .finished)
        #expect(once.file == bytes)
        #expect(once.requests == 2)
        var always = try World(fixture, seed: 1)
        #expect(try always.run(isDamaged: { _ in true }) == .failed(.digestMismatch))
        #expect(always.file == [])
        always.download.retry(at: always.now)
        #expect(try always.run() == .finished)
        #expect(always.file == bytes)
    }

    @Test func missingAndIncompleteAttachmentsEndTheDownload() throws {
        let fixture = try Fixture.withNote()
        var missing = try World(fixture, seed: 1)
        #expect(try missing.run() == .failed(.attachmentMissing))
        fixture.put([1], of: [1, 2])
        var incomplete = try World(fixture, seed: 1)
        #expect(try incomplete.run() == .failed(.uploadIncomplete))
        fixture.patch([2], at: 1, complete: true)
        incomplete.download.retry(at: incomplete.now)
        #expect(try incomplete.run() == .finished)
        #expect(incomplete.file == [1, 2])
    }
}
