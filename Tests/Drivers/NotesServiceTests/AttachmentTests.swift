import Foundation
import HTTPTypes
import NotesContract
import Testing
import Wire

@testable import NotesService

/// Attachments without sockets: uploads, names, access and downloads.
@Suite struct AttachmentTests {
    private static let note = "/api/notes/\(Fixture.n1)/"

    // MARK: Uploads

    @Test func anUploadInOneRequestIsListedAndReturned() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(200_000)
        let digest = AttachmentDigest(of: bytes)
        let created = fixture.put(bytes, of: bytes)
        #expect(created.status == 201)
        #expect(created.field("Location") == Fixture.path)
        #expect(created.field("Upload-Complete") == "?1")
        #expect(created.field("Upload-Offset") == "200000")
        #expect(created.text == #"{"name":"photo.jpg","size":200000,"digest":"\#(digest.field)","complete":true}"#)
        #expect(fixture.transfer("GET", Fixture.list).text == "[\(created.text)]")
        let read = fixture.transfer("GET")
        #expect(read.status == 200)
        #expect(read.body == bytes)
        #expect(read.field("Repr-Digest") == digest.field)
        #expect(read.field("Content-Type") == "application/octet-stream")
        #expect(read.field("Content-Disposition") == "attachment")
        #expect(read.field("X-Content-Type-Options") == "nosniff")
        #expect(read.field("Slowlane-Notes") == "1")
        let head = fixture.transfer("HEAD")
        #expect(head.status == 200)
        #expect(head.body == [])
        #expect(head.field("Upload-Complete") == "?1")
        #expect(head.field("ETag") == read.field("ETag"))
    }

    @Test func anUploadInPiecesContinuesAtItsOffset() throws {
        let fixture = try Fixture.withNote()
        // The pieces neither begin nor end at the boundaries of storage.
        let bytes = Fixture.sample(300_001)
        let created = fixture.put(Array(bytes[..<70_000]), of: bytes)
        #expect(created.status == 201)
        #expect(created.field("Upload-Complete") == "?0")
        #expect(created.field("Upload-Limit") == "max-size=67108864, max-append-size=1048576")
        let head = fixture.transfer("HEAD")
        #expect(head.status == 204)
        #expect(head.field("Upload-Offset") == "70000")
        #expect(head.field("Upload-Complete") == "?0")
        #expect(head.field("Upload-Length") == "300001")
        #expect(head.field("Repr-Digest") == AttachmentDigest(of: bytes).field)
        #expect(head.field("Cache-Control") == "no-store")
        #expect(fixture.transfer("GET").status == 409)
        #expect(fixture.transfer("GET", Fixture.list).text.contains(#""size":300001"#))
        #expect(fixture.transfer("GET", Fixture.list).text.hasSuffix(#""complete":false}]"#))
        #expect(fixture.patch(Array(bytes[70_000..<70_001]), at: 70_000, complete: false).status == 204)
        #expect(fixture.patch(Array(bytes[70_001..<300_001]), at: 70_001, complete: false).status == 204)
        // All bytes have arrived, but the client has not declared the end.
        #expect(fixture.transfer("HEAD").field("Upload-Complete") == "?0")
        let last = fixture.patch([], at: 300_001, complete: true)
        #expect(last.status == 204)
        #expect(last.field("Upload-Complete") == "?1")
        #expect(fixture.transfer("GET").body == bytes)
    }

    @Test func aPatchAtAnotherOffsetIs409AndStoresNothing() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(1000)
        fixture.put(Array(bytes[..<400]), of: bytes)
        for offset in [0, 399, 401, 1000] {
            let wrong = fixture.patch(Array(bytes[400...]), at: offset, complete: true)
            #expect(wrong.status == 409, "\(offset)")
            #expect(wrong.field("Upload-Offset") == "400")
            #expect(wrong.field("Upload-Complete") == "?0")
        }
        #expect(fixture.patch(Array(bytes[400...]), at: 400, complete: true).status == 204)
        // The response was lost and the client repeats the request.
        let repeated = fixture.patch(Array(bytes[400...]), at: 400, complete: true)
        #expect(repeated.status == 409)
        #expect(repeated.field("Upload-Offset") == "1000")
        #expect(repeated.field("Upload-Complete") == "?1")
        #expect(fixture.patch([], at: 1000, complete: true).status == 204)
        #expect(fixture.patch([1], at: 1000, complete: true).status == 400)
        #expect(fixture.transfer("GET").body == bytes)
    }

    @Test func aRepeatedPutIsTheSameUploadAndAnotherContentIs409() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(1000)
        #expect(fixture.put([], of: bytes, complete: false).status == 201)
        #expect(fixture.put(Array(bytes[..<400]), of: bytes).status == 200)
        #expect(fixture.transfer("HEAD").field("Upload-Offset") == "400")
        let begun = fixture.put(Array(bytes[..<400]), of: bytes)
        #expect(begun.status == 409)
        #expect(begun.field("Upload-Offset") == "400")
        let other = fixture.put([1, 2, 3], of: [1, 2, 3])
        #expect(other.status == 409)
        #expect(other.field("Upload-Length") == "1000")
        fixture.patch(Array(bytes[400...]), at: 400, complete: true)
        let again = fixture.put(bytes, of: bytes)
        #expect(again.status == 200)
        #expect(again.field("Upload-Complete") == "?1")
        #expect(fixture.put([1, 2, 3], of: [1, 2, 3]).status == 409)
        let foreign = fixture.transfer(
            "PATCH", Fixture.path, [],
            with: [
                ("Upload-Complete", "?1"), ("Upload-Offset", "1000"), ("Content-Type", "application/partial-upload"),
                ("Repr-Digest", AttachmentDigest(of: [1]).field),
            ])
        #expect(foreign.status == 409)
    }

    @Test func aMismatchDiscardsTheUpload() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(1000)
        var wrong = bytes
        wrong[500] ^= 1
        #expect(fixture.put(wrong, of: bytes).status == 422)
        #expect(fixture.transfer("HEAD").status == 404)
        fixture.put(Array(wrong[..<600]), of: bytes)
        #expect(fixture.patch(Array(wrong[600...]), at: 600, complete: true).status == 422)
        #expect(fixture.transfer("HEAD").status == 404)
        fixture.put(Array(bytes[..<600]), of: bytes)
        let short = fixture.patch(Array(bytes[600..<999]), at: 600, complete: true)
        #expect(short.status == 422)
        #expect(short.text.contains("999 bytes have arrived, not 1000"))
        #expect(fixture.transfer("GET", Fixture.list).text == "[]")
        #expect(fixture.put(bytes, of: bytes).status == 201)
    }

    @Test func malformedUploadsAreRejectedAndStoreNothing() throws {
        let fixture = try Fixture.withNote()
        let digest = AttachmentDigest(of: [1, 2, 3]).field
        let good = ["Upload-Complete": "?1", "Upload-Length": "3", "Repr-Digest": digest]
        func put(_ changes: [String: String?]) -> Int {
            let fields = good.merging(changes.mapValues { $0 ?? "" }) { $1 }.filter { !$0.value.isEmpty }
            return fixture.transfer("PUT", Fixture.path, [1, 2, 3], with: fields.map { ($0.key, $0.value) }).status
        }
        for field in ["Upload-Complete", "Repr-Digest"] { #expect(put([field: nil]) == 400, "\(field)") }
        #expect(put(["Upload-Length": nil, "Upload-Complete": "?0"]) == 400)
        for value in ["1", "?2", "true", "?1, ?0"] { #expect(put(["Upload-Complete": value]) == 400, "\(value)") }
        for value in ["-3", "3.0", "x", "9999999999999999", "٣"] {
            #expect(put(["Upload-Length": value]) == 400, "\(value)")
        }
        for value in ["sha-256=3", "sha-256=:AAAA:", "sha-512=:AAAA:", "sha-256=::", ":", "sha-256=:\(digest):"] {
            #expect(put(["Repr-Digest": value]) == 400, "\(value)")
        }
        // Fewer bytes declared than sent.
        #expect(put(["Upload-Length": "2"]) == 400)
        #expect(fixture.transfer("GET", Fixture.list).text == "[]")
        #expect(put(["Repr-Digest": "sha-512=:AAAA:, \(digest);q=1", "Upload-Length": nil]) == 201)
        fixture.transfer("DELETE")
        fixture.put([1], of: [1, 2, 3])
        let append = ["Upload-Complete": "?0", "Upload-Offset": "1", "Content-Type": "application/partial-upload"]
        func patch(_ changes: [String: String], _ body: [UInt8] = [2]) -> Int {
            let fields = append.merging(changes) { $1 }.filter { !$0.value.isEmpty }
            return fixture.transfer("PATCH", Fixture.path, body, with: fields.map { ($0.key, $0.value) }).status
        }
        #expect(patch(["Content-Type": "application/json"]) == 415)
        #expect(patch(["Content-Type": ""]) == 415)
        for field in ["Upload-Complete", "Upload-Offset"] { #expect(patch([field: ""]) == 400, "\(field)") }
        #expect(patch(["Upload-Offset": "-1"]) == 400)
        #expect(patch(["Upload-Length": "4"]) == 400)
        #expect(patch([:], [2, 3, 4]) == 400)
        #expect(fixture.transfer("HEAD").field("Upload-Offset") == "1")
        #expect(patch(["Content-Type": "Application/Partial-Upload; x=y", "Upload-Length": "3"]) == 204)
    }

    @Test func anEmptyAttachmentIsComplete() throws {
        let fixture = try Fixture.withNote()
        #expect(fixture.put([], of: []).status == 201)
        let read = fixture.transfer("GET")
        #expect(read.status == 200)
        #expect(read.body == [])
        #expect(fixture.transfer("GET", with: [("Range", "bytes=0-")]).status == 416)
    }

    // MARK: Names

    @Test func namesAreBytes() throws {
        let fixture = try Fixture.withNote()
        // The first two are canonically equivalent.
        let names = ["é", "e\u{301}", "a b+%?#&", ".hidden", "pin", String(repeating: "x", count: 255), "..."]
        for text in names {
            let name = try #require(AttachmentName(text))
            let bytes = Array(text.utf8)
            #expect(fixture.put(AttachmentHTTP.path(of: Fixture.n1, name), bytes, of: bytes).status == 201, "\(text)")
        }
        let entries = try #require(AttachmentEntry.list(json: fixture.transfer("GET", Fixture.list).body))
        #expect(entries.map(\.name) == names.compactMap { AttachmentName($0) }.sorted())
        for text in names {
            let name = try #require(AttachmentName(text))
            #expect(fixture.transfer("GET", AttachmentHTTP.path(of: Fixture.n1, name)).body == Array(text.utf8))
        }
        #expect(fixture.transfer("GET", Fixture.list + "%70%69n").text == "pin")
        for segment in [
            "a%2Fb", "%00", "%FF", "%", "%4", "%zz", ".", "..", "%2e%2E", String(repeating: "x", count: 256),
        ] {
            #expect(fixture.transfer("GET", Fixture.list + segment).status == 400, "\(segment)")
            #expect(fixture.put(Fixture.list + segment, [1], of: [1]).status == 400, "\(segment)")
        }
        for path in ["a/b", "a/", "/"] {
            #expect(fixture.transfer("GET", Fixture.list + path).status == 404, "\(path)")
        }
    }

    // MARK: Access

    @Test(arguments: APIContract.all) func contractsDiffer(contract: APIContract) throws {
        let fixture = try Fixture.withNote(contract)
        let isOrig = contract == .orig
        #expect(fixture.put([1], of: [1]).status == (isOrig ? 404 : 201))
        #expect(fixture.transfer("GET", Fixture.list).status == (isOrig ? 404 : 200))
        let slashless = String(Fixture.list.dropLast())
        #expect(fixture.transfer("GET", slashless).status == (contract == .compat ? 301 : 404))
        #expect(
            fixture.transfer("GET", as: nil).status == (isOrig ? 404 : contract == .strict ? 401 : 403))
        let revision = fixture.send("GET", Self.note).revision
        #expect(fixture.send("DELETE", "\(Self.note)?revision=\(revision)").status == 204)
        #expect(fixture.transfer("GET").status == (contract == .strict ? 410 : 404))
        #expect(fixture.put([1], of: [1]).status == (contract == .strict ? 410 : 404))
    }

    @Test func attachmentsOfOthersAndOfMissingNotesAre404() throws {
        let fixture = try Fixture.withNote()
        fixture.put([1], of: [1])
        for method in ["GET", "HEAD", "DELETE"] {
            #expect(fixture.transfer(method, as: Fixture.bo).status == 404, "\(method)")
        }
        #expect(fixture.put([1], of: [1], as: Fixture.bo).status == 404)
        #expect(fixture.transfer("GET", Fixture.list, as: Fixture.bo).status == 404)
        let missing = Fixture.list.replacing(Fixture.n1, with: Fixture.n2)
        #expect(fixture.transfer("GET", missing).status == 404)
        #expect(fixture.put(missing + "a", [1], of: [1]).status == 404)
        // The note comes before the fields of the upload.
        #expect(fixture.transfer("PUT", missing + "a").status == 404)
        // Bo's note with the same uuid has attachments of its own.
        fixture.create(as: Fixture.bo)
        #expect(fixture.put([2], of: [2], as: Fixture.bo).status == 201)
        #expect(fixture.transfer("GET").body == [1])
        #expect(fixture.transfer("GET", as: Fixture.bo).body == [2])
        #expect(
            fixture.transfer("GET", Fixture.path.uppercased().replacing("/API/NOTES/", with: "/api/notes/")).status
                == 404)
    }

    @Test func methodsOptionsRateLimitAndForeignOrigins() throws {
        var limits = NotesService.Limits()
        limits.requestsPerSecond = 4
        let fixture = try Fixture.withNote(limits: limits)
        let post = fixture.transfer("POST")
        #expect(post.status == 405)
        #expect(post.field("Allow") == "GET, HEAD, PUT, PATCH, DELETE, OPTIONS")
        let options = fixture.transfer("OPTIONS")
        #expect(options.status == 200)
        #expect(options.field("Accept-Patch") == "application/partial-upload")
        #expect(options.field("Upload-Limit") == "max-size=67108864, max-append-size=1048576")
        #expect(fixture.transfer("GET", with: [("Origin", "http://evil.example")]).status == 404)
        #expect(fixture.transfer("DELETE", with: [("Origin", "http://evil.example")]).status == 403)
        #expect(fixture.put([1], of: [1]).status == 429)
    }

    @Test func aSessionsUploadNeedsItsCSRFToken() throws {
        let fixture = try Fixture.withNote()
        let login = fixture.send("POST", "/accounts/login/", "username=ada&password=secret", as: nil)
        let cookies = login.head.headerFields[values: .setCookie].map { String($0.prefix { $0 != ";" }) }
        let cookie = cookies.joined(separator: "; ")
        let token = try #require(cookies.first { $0.hasPrefix("csrftoken=") }).dropFirst(10)
        let fields = [
            ("Cookie", cookie), ("Upload-Complete", "?1"), ("Repr-Digest", AttachmentDigest(of: [1]).field),
        ]
        #expect(fixture.transfer("PUT", Fixture.path, [1], as: nil, with: fields).status == 403)
        let accepted = fixture.transfer(
            "PUT", Fixture.path, [1], as: nil, with: fields + [("X-CSRFToken", String(token))])
        #expect(accepted.status == 201)
    }

    @Test func anIdempotencyKeyHasNoEffect() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(3)
        fixture.put([bytes[0]], of: bytes)
        func append(_ offset: Int) -> Int {
            fixture.transfer(
                "PATCH", Fixture.path, [bytes[offset]],
                with: [
                    ("Upload-Complete", offset == 2 ? "?1" : "?0"), ("Upload-Offset", String(offset)),
                    ("Content-Type", "application/partial-upload"), ("Idempotency-Key", "k"),
                ]
            ).status
        }
        #expect(append(1) == 204)
        #expect(append(2) == 204)
        #expect(fixture.transfer("GET").body == bytes)
    }

    // MARK: Downloads

    @Test(arguments: [
        ("bytes=0-0", 0..<1), ("bytes=0-", 0..<200_000), ("bytes=65535-65536", 65_535..<65_537),
        ("bytes=199999-", 199_999..<200_000), ("bytes=100-999999999999999999999", 100..<200_000),
        ("bytes=-1", 199_999..<200_000), ("bytes=-999999999", 0..<200_000), ("BYTES= 5- 9", 5..<10),
    ]) func aRangeReturnsItsBytes(field: String, range: Range<Int>) throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(200_000)
        fixture.put(bytes, of: bytes)
        let part = fixture.transfer("GET", with: [("Range", field)])
        #expect(part.status == 206)
        #expect(part.body == Array(bytes[range]))
        #expect(part.field("Content-Range") == "bytes \(range.lowerBound)-\(range.upperBound - 1)/200000")
        #expect(part.field("Repr-Digest") == AttachmentDigest(of: bytes).field)
    }

    @Test func otherRangesAreIgnoredOr416() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(1000)
        fixture.put(bytes, of: bytes)
        for field in [
            "bytes=1-0", "bytes=-", "bytes=a-b", "lines=0-1", "bytes=0-1,3-4", "bytes", "bytes=1", "bytes=--1",
        ] {
            let whole = fixture.transfer("GET", with: [("Range", field)])
            #expect(whole.status == 200, "\(field)")
            #expect(whole.body == bytes, "\(field)")
        }
        for field in ["bytes=1000-", "bytes=5000-6000", "bytes=-0", "bytes=99999999999999999999-"] {
            let none = fixture.transfer("GET", with: [("Range", field)])
            #expect(none.status == 416, "\(field)")
            #expect(none.field("Content-Range") == "bytes */1000")
        }
        let head = fixture.transfer("HEAD", with: [("Range", "bytes=0-0")])
        #expect(head.status == 200)
    }

    @Test func conditionsUseTheETag() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(1000)
        fixture.put(bytes, of: bytes)
        let tag = try #require(fixture.transfer("GET").field("ETag"))
        #expect(fixture.transfer("GET", with: [("If-None-Match", tag)]).status == 304)
        #expect(fixture.transfer("GET", with: [("If-None-Match", "\"x\"")]).status == 200)
        #expect(fixture.transfer("GET", with: [("If-Match", "\"x\"")]).status == 412)
        #expect(fixture.transfer("GET", with: [("If-Match", tag)]).status == 200)
        let range = ("Range", "bytes=0-9")
        #expect(fixture.transfer("GET", with: [range, ("If-Range", tag)]).status == 206)
        #expect(fixture.transfer("GET", with: [range, ("If-Range", "W/" + tag)]).status == 200)
        #expect(fixture.transfer("GET", with: [range, ("If-Range", "Sun, 01 Mar 2026 08:00:00 GMT")]).status == 200)
        // The attachment has one representation.
        #expect(fixture.transfer("GET", with: [("Accept", "image/png")]).status == 200)
    }

    @Test func aDownloadEndsWhenItsAttachmentIsRemoved() throws {
        let fixture = try Fixture.withNote()
        let bytes = Fixture.sample(200_000)
        fixture.put(bytes, of: bytes)
        var request = HTTPRequest(method: .get, scheme: "http", authority: "localhost", path: Fixture.path)
        request.headerFields[.authorization] = Fixture.ada
        guard case .bytes(let parts) = fixture.service.respond(to: request, body: []).body else {
            Issue.record("the body has no parts")
            return
        }
        #expect(parts.length == 200_000)
        #expect(try parts.next()?.count == StoredAttachment.pieceBytes)
        fixture.transfer("DELETE")
        #expect(throws: (any Error).self) { while try parts.next() != nil {} }
        #expect(fixture.log.lines == [])
    }
}
