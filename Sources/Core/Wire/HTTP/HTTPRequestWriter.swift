internal import NIOCore

/// A serialised request that is written in pieces, with the count of its bytes that the kernel has accepted.
///
/// Each piece but the last has ``HTTPClientMachine/writeBytesMax`` bytes. A byte of the body is copied once, into its
/// piece.
struct HTTPRequestWriter: Sendable {
    private static let pieceBytes = HTTPClientMachine.writeBytesMax

    /// The bytes of the head and the body.
    let byteCount: Int
    /// The part of the head that is in no piece.
    private var head: ByteBuffer
    /// The part of the body that is in no piece.
    private var body: ArraySlice<UInt8>
    /// The bytes of all pieces taken.
    private var takenCount = 0
    /// The bytes that the kernel has accepted.
    private var acceptedCount = 0

    init(head: ByteBuffer, body: [UInt8]) {
        self.head = head
        self.body = body[...]
        byteCount = head.readableBytes + body.count
    }

    /// Whether the kernel has accepted the whole request.
    var isAccepted: Bool { acceptedCount == byteCount }

    /// Takes the next piece; `nil` if there is none, or if two are outstanding. The second one keeps the kernel
    /// supplied while the acceptance of the first one is reported.
    mutating func takePiece() -> ByteBuffer? {
        // All pieces but the last have `pieceBytes` bytes, so up to that many outstanding bytes are one piece at most.
        guard takenCount < byteCount, takenCount - acceptedCount <= Self.pieceBytes else { return nil }
        let size = min(Self.pieceBytes, byteCount - takenCount)
        var piece = ByteBuffer()
        piece.reserveCapacity(size)
        if var start = head.readSlice(length: min(size, head.readableBytes)) { piece.writeBuffer(&start) }
        let bodySize = size - piece.readableBytes
        piece.writeBytes(body.prefix(bodySize))
        takenCount += size
        // The memory is freed with the last piece.
        body = takenCount == byteCount ? [] : body.dropFirst(bodySize)
        return piece
    }

    /// Records that the kernel has accepted further bytes. Returns `false`, and records nothing, if they exceed the
    /// pieces taken.
    mutating func recordAccepted(_ count: Int) -> Bool {
        guard count >= 0, count <= takenCount - acceptedCount else { return false }
        acceptedCount += count
        return true
    }
}
