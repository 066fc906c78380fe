internal import Client
internal import NotesContract
internal import Wire

/// A file of the payload, as far as the device has it. There is one per digest.
struct StoredFile: Hashable, Sendable {
    /// The bytes of a piece in the store.
    static let pieceBytes = 64 << 10

    /// The file of the server.
    var key: RecordKey
    var title: String
    /// The target of its requests.
    var url: String
    let size: Int
    let digest: AttachmentDigest
    /// The number of bytes in the store.
    var received = 0
    /// Whether all bytes are in the store, and have the digest.
    var isPulled = false
    /// Whether the last transfer has failed.
    var hasFailed = false
    /// Whether the user wants to keep it.
    var isPinned = false
    /// The number of the user's last opening; 0 for none.
    var opened = 0
    /// The hash of the bytes in the store; not stored itself.
    var hasher = SHA256Hasher()
    /// The bytes of the last piece, if it is not full.
    var partial: [UInt8] = []

    init(_ file: FieldPayload.File) {
        key = file.key
        title = file.title
        url = file.url
        size = file.bytes
        digest = file.digest
    }

    /// The identifier in the store.
    var id: String { digest.description }

    /// The entity tag of the server.
    var entityTag: String { "\"f-\(digest)\"" }

    /// The range of the next request.
    func nextRange(of bytes: Int) -> Range<Int> { received..<min(size, received + bytes) }

    /// Adds bytes after those in the store, up to the size of the file. Returns the changed pieces by their keys.
    mutating func append(_ bytes: [UInt8]) -> [(key: String, value: [UInt8])] {
        var rest = bytes.prefix(size - received)
        hasher.update(rest)
        var pieces: [(String, [UInt8])] = []
        while !rest.isEmpty {
            let index = received / Self.pieceBytes
            let some = rest.prefix(Self.pieceBytes - partial.count)
            partial += some
            rest = rest.dropFirst(some.count)
            received += some.count
            pieces.append((pieceKey(index), partial))
            if partial.count == Self.pieceBytes { partial = [] }
        }
        return pieces
    }

    /// Forgets the bytes. Returns the keys of the pieces that were stored.
    mutating func discard() -> [String] {
        let count = (received + Self.pieceBytes - 1) / Self.pieceBytes
        received = 0
        isPulled = false
        hasher = SHA256Hasher()
        partial = []
        return (0..<count).map(pieceKey)
    }

    private func pieceKey(_ index: Int) -> String { Self.pieceKey(id, index) }

    /// Returns the key of a piece; the keys are in the order of the pieces.
    static func pieceKey(_ id: String, _ index: Int) -> String { "piece/\(id) \(10_000 + index)" }

    // MARK: The store

    var stored: JSONValue {
        [
            "key": .text(key.text), "title": .text(title), "url": .text(url), "bytes": .integer(Int64(size)),
            "received": .integer(Int64(received)), "pulled": .bool(isPulled), "failed": .bool(hasFailed),
            "pinned": .bool(isPinned), "opened": .integer(Int64(opened)),
        ]
    }

    /// Restores a file with its bytes.
    init?(id: String, _ json: JSONValue, pieces: [[UInt8]]) {
        guard let digest = AttachmentDigest(field: "sha-256=:\(id):"),
            let key = json["key"].text.flatMap({ RecordKey($0) }), let title = json["title"].text,
            let url = json["url"].text, case .integer(let size) = json["bytes"],
            case .integer(let received) = json["received"],
            case .integer(let opened) = json["opened"], pieces.reduce(0, { $0 + $1.count }) == Int(received)
        else { return nil }
        self.key = key
        self.title = title
        self.url = url
        self.size = Int(size)
        self.digest = digest
        self.received = Int(received)
        self.opened = Int(opened)
        isPulled = json["pulled"] == .bool(true)
        hasFailed = json["failed"] == .bool(true)
        isPinned = json["pinned"] == .bool(true)
        if !isPulled {
            for piece in pieces { hasher.update(piece) }
            if let last = pieces.last, last.count < Self.pieceBytes { partial = last }
        }
    }
}
