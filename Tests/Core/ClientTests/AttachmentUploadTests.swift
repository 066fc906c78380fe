import Client
import Determinism
import NotesContract
import Testing

/// The upload machine alone: requests, sizes of pieces, delays and errors.
@Suite struct AttachmentUploadTests {
    private static let uuid = "00000000-0000-4000-8000-000000000001"
    private static let bytes = (0..<200).map { UInt8($0) }
    private static let digest = AttachmentDigest(of: bytes)

    private static func upload(
        length: Int = 200, isResumed: Bool = false, piece: Int = 40, min: Int = 10, max: Int = 100
    ) throws -> AttachmentUpload {
        AttachmentUpload(
            uuid: uuid, name: try #require(AttachmentName("é")), length: length, digest: digest, isResumed: isResumed,
            policy: AttachmentPolicy(pieceFirst: piece, pieceMin: min, pieceMax: max), seed: 1)
    }

    /// Takes the next request and serves the read before it.
    private static func request(_ upload: inout AttachmentUpload) throws -> AttachmentRequest {
        var action = upload.takeAction()
        if case .read(let range)? = action {
            upload.bytesRead(Array(bytes[range]), of: range, at: .start)
            action = upload.takeAction()
        }
        guard case .send(let request)? = action else {
            throw UnexpectedAction(description: "\(action.map { "\($0)" } ?? "no action")")
        }
        #expect(upload.takeAction() == nil)
        return request
    }

    private struct UnexpectedAction: Error, CustomStringConvertible { let description: String }

    private static func response(
        _ status: Int, offset: Int? = nil, complete: Bool? = nil, _ others: [(String, String)] = []
    ) -> AttachmentResponse {
        var fields = [AttachmentRequest.Field("slowlane-notes", "1")]
        if let offset { fields.append(.init("upload-offset", String(offset))) }
        if let complete { fields.append(.init("Upload-Complete", complete ? "?1" : "?0")) }
        return AttachmentResponse(status: status, fields: fields + others.map { .init($0.0, $0.1) })
    }

    private static func fields(_ request: AttachmentRequest) -> [String] {
        request.fields.map { "\($0.name): \($0.value)" }
    }

    @Test func theFirstRequestCreatesAndTheOthersAppend() throws {
        var upload = try Self.upload(length: 50)
        let put = try Self.request(&upload)
        #expect(put.method == "PUT")
        #expect(put.target == "/api/notes/\(Self.uuid)/attachments/%C3%A9")
        #expect(put.range == 0..<40)
        #expect(put.body == Array(Self.bytes[..<40]))
        #expect(Self.fields(put) == ["Upload-Complete: ?0", "Upload-Length: 50", "Repr-Digest: \(Self.digest.field)"])
        upload.responseReceived(Self.response(201, offset: 40, complete: false), to: put.id, at: .start)
        let patch = try Self.request(&upload)
        #expect(patch.method == "PATCH")
        #expect(patch.range == 40..<50)
        #expect(
            Self.fields(patch) == [
                "Upload-Complete: ?1", "Upload-Length: 50", "Repr-Digest: \(Self.digest.field)", "Upload-Offset: 40",
                "Content-Type: application/partial-upload",
            ])
        upload.responseReceived(Self.response(204, offset: 50, complete: true), to: patch.id, at: .start)
        #expect(upload.takeAction() == .finished)
        #expect(upload.takeAction() == nil)
        #expect(upload.nextDeadline == nil)
    }

    @Test func anEmptyAttachmentNeedsOneRequest() throws {
        var upload = try Self.upload(length: 0)
        let put = try Self.request(&upload)
        #expect(put.method == "PUT")
        #expect(put.body == [])
        #expect(Self.fields(put).first == "Upload-Complete: ?1")
    }

    @Test func piecesGrowOnSuccessAndHalveOnACut() throws {
        var upload = try Self.upload()
        var sizes: [Int] = []
        for failing in [false, false, true, true, true, true, false] {
            var request = try Self.request(&upload)
            if request.method == "HEAD" {
                let known = Self.response(204, offset: upload.offset, complete: false)
                upload.responseReceived(known, to: request.id, at: .start)
                request = try Self.request(&upload)
            }
            sizes.append(request.range.count)
            if failing {
                upload.requestFailed(.outcomeUnknown, to: request.id, at: .start)
                upload.advance(to: try #require(upload.nextDeadline))
            } else {
                let done = Self.response(204, offset: request.range.upperBound, complete: false)
                upload.responseReceived(done, to: request.id, at: .start)
            }
        }
        #expect(sizes == [40, 100, 60, 50, 25, 12, 10])
        #expect(upload.piece == 40)
    }

    /// The uplinks of 2G in the country, 2G, Edge, 3G and a LAN, in bytes per second, with their round trips.
    @Test(arguments: [(2_250.0, 0.8), (4_000, 0.6), (25_000, 0.4), (41_000, 0.2), (10_000_000, 0.001)])
    func eachPieceTakes5SecondsAtMost(rate: Double, roundTrip: Double) throws {
        let size = 2_000_000
        var upload = AttachmentUpload(
            uuid: Self.uuid, name: try #require(AttachmentName("a")), length: size, digest: Self.digest, seed: 1)
        var (now, times, limit) = (Instant.start, [Double](), 1_000)
        while let action = upload.takeAction(), limit > 0 {
            limit -= 1
            switch action {
            case .read(let range): upload.bytesRead([UInt8](repeating: 0, count: range.count), of: range, at: now)
            case .send(let request):
                let time = roundTrip + Double(request.body.count) / rate
                times.append(time)
                now = now + .milliseconds(Int64(time * 1000))
                let end = request.range.upperBound
                let response = Self.response(204, offset: end, complete: end == size)
                upload.responseReceived(response, to: request.id, at: now)
            case .finished: limit = 0
            case .failed(let error): Issue.record("\(error)")
            }
        }
        #expect(times.max() ?? 9 <= 5.01, "\(times)")
        // Not many more than pieces of 5 s, or of 1 MiB, would need.
        let fewest = max(2, Double(size) / rate / 5)
        #expect(Double(times.count) <= fewest * 1.25 + 5, "\(times.count) pieces, at least \(fewest)")
    }

    @Test func anUnknownOutcomeAsksForTheOffsetAndAnUnsentRequestDoesNot() throws {
        var upload = try Self.upload()
        let put = try Self.request(&upload)
        upload.requestFailed(.notSent, to: put.id, at: .start)
        #expect(upload.takeAction() == nil)
        upload.advance(to: try #require(upload.nextDeadline))
        let again = try Self.request(&upload)
        #expect(again.method == "PUT")
        #expect(again.range == put.range)
        upload.requestFailed(.outcomeUnknown, to: again.id, at: .start)
        upload.advance(to: try #require(upload.nextDeadline))
        let head = try Self.request(&upload)
        #expect(head.method == "HEAD")
        #expect(head.fields == [])
        upload.responseReceived(
            Self.response(204, offset: 40, complete: false, [("Repr-Digest", Self.digest.field)]), to: head.id,
            at: .start)
        let patch = try Self.request(&upload)
        #expect(patch.method == "PATCH")
        #expect(patch.range == 40..<60)
    }

    @Test func anOffsetBeyondWhatWasSentIsAnError() throws {
        var upload = try Self.upload()
        let put = try Self.request(&upload)
        upload.responseReceived(Self.response(201, offset: 41, complete: false), to: put.id, at: .start)
        #expect(upload.takeAction() == .failed(.offsetBeyondSent(offset: 41, sent: 40)))
        #expect(upload.nextDeadline == nil)
        // An earlier run may have sent anything.
        var resumed = try Self.upload(isResumed: true)
        let head = try Self.request(&resumed)
        #expect(head.method == "HEAD")
        resumed.responseReceived(Self.response(204, offset: 150, complete: false), to: head.id, at: .start)
        #expect(try Self.request(&resumed).range == 150..<190)
    }

    /// An earlier transfer, or another client, has sent more than this one.
    @Test func anUploadThatExistsContinuesAtItsOffset() throws {
        var upload = try Self.upload()
        let put = try Self.request(&upload)
        upload.responseReceived(Self.response(409), to: put.id, at: .start)
        let head = try Self.request(&upload)
        #expect(head.method == "HEAD")
        let digest = ("Repr-Digest", Self.digest.field)
        upload.responseReceived(Self.response(204, offset: 150, complete: false, [digest]), to: head.id, at: .start)
        let patch = try Self.request(&upload)
        #expect(patch.method == "PATCH")
        #expect(patch.range == 150..<190)
        // After that, the server cannot have more than was sent.
        upload.responseReceived(Self.response(204, offset: 190, complete: false), to: patch.id, at: .start)
        #expect(try Self.request(&upload).range == 190..<200)
    }

    @Test func anOffsetThatMovesBackwardsIsAccepted() throws {
        var upload = try Self.upload()
        let put = try Self.request(&upload)
        upload.responseReceived(Self.response(201, offset: 40, complete: false), to: put.id, at: .start)
        let patch = try Self.request(&upload)
        upload.responseReceived(Self.response(409), to: patch.id, at: .start)
        let head = try Self.request(&upload)
        #expect(head.method == "HEAD")
        upload.responseReceived(Self.response(204, offset: 7, complete: false), to: head.id, at: .start)
        #expect(try Self.request(&upload).range.lowerBound == 7)
    }

    /// A server that always contradicts itself gets fewer and fewer requests.
    @Test func conflictsWithoutProgressBackOff() throws {
        var upload = try Self.upload()
        var now = Instant.start
        var requests = 0
        while now < .start + .seconds(600), requests < 1000 {
            let request = try Self.request(&upload)
            requests += 1
            let isHead = request.method == "HEAD"
            let response = isHead ? Self.response(204, offset: 0, complete: false) : Self.response(409)
            upload.responseReceived(response, to: request.id, at: now)
            if let deadline = upload.nextDeadline {
                now = deadline
                upload.advance(to: now)
            }
        }
        #expect((10...60).contains(requests))
    }

    @Test func delaysDoubleAndRetryAfterIsObserved() throws {
        var upload = try Self.upload()
        var now = Instant.start
        for failures in 1...12 {
            let request = try Self.request(&upload)
            upload.requestFailed(.notSent, to: request.id, at: now)
            let deadline = try #require(upload.nextDeadline)
            let longest = min(60, 1 << (failures - 1))
            #expect(deadline - now <= .seconds(Int64(longest)))
            #expect(deadline - now >= .milliseconds(Int64(longest) * 500))
            upload.advance(to: Instant(deadline.sinceStart - Nanoseconds(1)))
            #expect(upload.takeAction() == nil)
            now = deadline
            upload.advance(to: now)
        }
        for (text, seconds) in [("90", 90), ("86400", 3600), ("999999999999999", 3600)] as [(String, Int64)] {
            let request = try Self.request(&upload)
            upload.responseReceived(
                Self.response(429, offset: nil, complete: nil, [("Retry-After", text)]), to: request.id, at: now)
            #expect(upload.nextDeadline == now + .seconds(seconds))
            upload.retry(at: now)
            #expect(upload.nextDeadline == nil)
        }
    }

    @Test func statusesEndTheUploadWithAReason() throws {
        let cases: [(Int, AttachmentTransferError)] = [
            (401, .unauthenticated(status: 401)), (403, .unauthenticated(status: 403)), (404, .noteMissing),
            (410, .noteMissing), (400, .rejected(status: 400)), (507, .rejected(status: 507)),
            (301, .rejected(status: 301)), (200, .rejected(status: 200)),
        ]
        for (status, error) in cases {
            var upload = try Self.upload()
            let put = try Self.request(&upload)
            upload.responseReceived(Self.response(status), to: put.id, at: .start)
            #expect(upload.takeAction() == .failed(error), "\(status)")
            #expect(upload.error == error)
            // The user logs in, or creates the note.
            upload.retry(at: .start)
            #expect(upload.error == nil)
            #expect(try Self.request(&upload).method == "HEAD")
        }
    }

    @Test func anotherDigestOrLengthIsAnotherAttachment() throws {
        for field in [("Repr-Digest", AttachmentDigest(of: [1]).field), ("Upload-Length", "201")] {
            var upload = try Self.upload(isResumed: true)
            let head = try Self.request(&upload)
            upload.responseReceived(Self.response(200, offset: 200, complete: true, [field]), to: head.id, at: .start)
            #expect(upload.takeAction() == .failed(.nameTaken))
        }
    }

    @Test func theUploadOfAnotherClientWithTheSameBytesIsFinished() throws {
        var upload = try Self.upload()
        let put = try Self.request(&upload)
        upload.responseReceived(Self.response(200, offset: 200, complete: true), to: put.id, at: .start)
        #expect(upload.takeAction() == .finished)
    }

    @Test func aBodyThatIsTooLargeIsHalvedDownToTheSmallestPiece() throws {
        var upload = try Self.upload()
        var sizes: [Int] = []
        for _ in 0..<3 {
            let put = try Self.request(&upload)
            sizes.append(put.range.count)
            upload.responseReceived(Self.response(413), to: put.id, at: .start)
        }
        #expect(sizes == [40, 20, 10])
        #expect(upload.takeAction() == .failed(.rejected(status: 413)))
        var large = try Self.upload()
        let put = try Self.request(&large)
        large.responseReceived(
            Self.response(413, offset: nil, complete: nil, [("Upload-Limit", "min-size=1, max-size=199")]), to: put.id,
            at: .start)
        #expect(large.takeAction() == .failed(.tooLarge(size: 200, limit: 199)))
    }

    @Test func otherInputsAreIgnored() throws {
        var upload = try Self.upload()
        upload.bytesRead([1], of: 0..<1, at: .start)
        upload.readFailed("no", of: 0..<1, at: .start)
        let put = try Self.request(&upload)
        upload.responseReceived(Self.response(400), to: put.id + 1, at: .start)
        upload.requestFailed(.notSent, to: put.id - 1, at: .start)
        upload.retry(at: .start)
        upload.advance(to: .start + .seconds(1000))
        #expect(upload.takeAction() == nil)
        upload.requestFailed(.outcomeUnknown, to: put.id, at: .start)
        // The response to a request that has been given up.
        upload.responseReceived(Self.response(400), to: put.id, at: .start)
        #expect(upload.takeAction() == nil)
        #expect(upload.nextDeadline != nil)
    }

    @Test func localErrorsEndTheUpload() throws {
        var short = try Self.upload()
        #expect(short.takeAction() == .read(0..<40))
        short.bytesRead([1, 2], of: 0..<40, at: .start)
        #expect(short.takeAction() == .failed(.unreadable("2 of 40 bytes at 0")))
        var failing = try Self.upload()
        #expect(failing.takeAction() == .read(0..<40))
        failing.readFailed("permission denied", of: 0..<40, at: .start)
        #expect(failing.error?.description == "the attachment cannot be read: permission denied")
    }

    @Test func anUploadThatIsLostAgainAndAgainStops() throws {
        var upload = try Self.upload()
        var puts = 0
        while upload.error == nil, puts < 100 {
            let put = try Self.request(&upload)
            puts += 1
            upload.responseReceived(
                Self.response(201, offset: put.range.upperBound, complete: false), to: put.id, at: .start)
            let patch = try Self.request(&upload)
            upload.responseReceived(Self.response(404), to: patch.id, at: .start)
        }
        #expect(puts == 4)
        #expect(upload.error == .uploadLost)
    }
}
