import Determinism
import NotesContract
import Testing

/// Digests and names of attachments.
@Suite struct AttachmentDigestTests {
    /// The digests are those of `sha256sum`.
    @Test(arguments: [
        (0, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="), (3, "A5BYxvLAy0ksUzsKTRTvd8wPeKvMztUofYShogEc+4E="),
    ]) func digestsHaveTheFormOfReprDigest(count: Int, text: String) {
        let digest = AttachmentDigest(of: (1...3).prefix(count).map { UInt8($0) })
        #expect(digest.bytes.count == 32)
        #expect(AttachmentDigest(field: digest.field) == digest)
        #expect(digest.description == text)
    }

    @Test func aMessageCanBeHashedInAnyPiecesWithAStoredState() throws {
        var random = RandomStream(seed: 1, "test/pieces")
        for count in 0..<300 {
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            var hasher = SHA256Hasher()
            var rest = bytes[...]
            while !rest.isEmpty {
                let some = rest.prefix(1 + Int(random.integer(below: 150)))
                hasher.update(some)
                rest = rest.dropFirst(some.count)
                hasher = try #require(SHA256Hasher(state: hasher.state))
            }
            #expect(hasher.count == UInt64(count))
            #expect(AttachmentDigest(of: hasher) == AttachmentDigest(of: bytes))
        }
    }

    @Test func aMalformedStateIsRejected() {
        var hasher = SHA256Hasher()
        hasher.update([1, 2, 3])
        let state = hasher.state
        #expect(SHA256Hasher(state: state) == hasher)
        #expect(SHA256Hasher(state: state.dropLast()) == nil)
        #expect(SHA256Hasher(state: state + [4]) == nil)
        #expect(SHA256Hasher(state: []) == nil)
    }

    @Test func namesSurvivePercentEncoding() throws {
        for text in ["a b", "é", "e\u{301}", "%41", "?#&+", "\u{1}"] {
            let name = try #require(AttachmentName(text))
            #expect(AttachmentName(percentEncoded: name.percentEncoded) == name)
            #expect(name.percentEncoded.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "?") })
        }
        #expect(AttachmentName("é") != AttachmentName("e\u{301}"))
        #expect(AttachmentName(percentEncoded: "%41") == AttachmentName("A"))
        for text in ["", ".", "..", "a/b", "a\0", String(repeating: "é", count: 128)] {
            #expect(AttachmentName(text) == nil, "\(text)")
        }
    }
}
