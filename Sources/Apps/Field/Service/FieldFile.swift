internal import Determinism
internal import NotesContract

/// A file of the service.
struct FieldFile: Sendable {
    let title: String
    let bytes: [UInt8]
    let digest: AttachmentDigest

    /// Creates a file whose bytes are determined by its title and size.
    init(title: String, size: Int) {
        self.title = title
        bytes = FieldFile.content(seed: FNV1a.digest(title.utf8), size: size)
        digest = AttachmentDigest(of: bytes)
    }

    /// The entity tag. It does not begin with a digit, because that would be the number of a revision.
    var entityTag: String { "\"f-\(digest)\"" }

    /// Returns bytes that are not UTF-8.
    private static func content(seed: UInt64, size: Int) -> [UInt8] {
        var random = RandomStream(seed: seed, "field/file")
        return [UInt8](unsafeUninitializedCapacity: size) { bytes, count in
            var word: UInt64 = 0
            for index in 0..<size {
                if index % 8 == 0 { word = random.next() }
                // 0xFF is in no UTF-8 text.
                bytes[index] = index % 4096 == 0 ? 0xFF : UInt8(truncatingIfNeeded: word)
                word >>= 8
            }
            count = size
        }
    }
}

/// A photo: what a client has announced, and the bytes that have arrived.
struct FieldPhoto: Sendable {
    let issue: String
    let title: String
    let size: Int
    let digest: AttachmentDigest
    var bytes: [UInt8] = []
    var isComplete = false
}
