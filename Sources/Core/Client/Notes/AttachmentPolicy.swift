public import Determinism

/// Sizes of pieces, and delays and limits of repeated attempts, for the transfer of an attachment.
public struct AttachmentPolicy: Hashable, Sendable {
    /// The size of the first piece in bytes: small, because the rate of the path is not known yet.
    public var pieceFirst: Int
    /// The smallest piece in bytes, except for the last one of an attachment.
    public var pieceMin: Int
    /// The largest piece in bytes; the server's limit of a request body is 1 MiB.
    public var pieceMax: Int
    /// The time that a piece may take at the rate of the one before it: what a connection that breaks has to repeat.
    public var pieceTimeMax = Nanoseconds.seconds(5)
    /// The delay after the first failure.
    public var delayFirst: Nanoseconds
    /// The longest delay. Delays double up to it; each is then reduced at random to between 50 % and 100 %.
    public var delayMax: Nanoseconds
    /// The longest delay that `Retry-After` can request.
    public var retryAfterMax: Nanoseconds
    /// How often an upload starts again after a digest mismatch.
    public var mismatchesMax: Int
    /// How often an upload starts again after the server has lost it.
    public var lossesMax: Int
    /// The size of the first response of a download in bytes; `nil` requests all that is missing at once.
    public var downloadPiece: Int?

    /// The policy of a client that receives complete responses only.
    public static let ranged = AttachmentPolicy(downloadPiece: pieceFirstDefault)

    /// The size in bytes of a first piece that takes less than 5 s at 20 kbit/s.
    public static let pieceFirstDefault = 8 << 10
    /// How many times larger than the one before it a piece may be.
    private static let growthMax = 4

    /// Creates a policy. Sizes are clamped to 1 byte and more, delays to 0 and more.
    public init(
        pieceFirst: Int = pieceFirstDefault, pieceMin: Int = 4 << 10, pieceMax: Int = 1 << 20,
        delayFirst: Nanoseconds = .seconds(1), delayMax: Nanoseconds = .seconds(60),
        retryAfterMax: Nanoseconds = .seconds(3600), mismatchesMax: Int = 1, lossesMax: Int = 3,
        downloadPiece: Int? = nil
    ) {
        self.pieceMin = max(1, pieceMin)
        self.pieceMax = max(self.pieceMin, pieceMax)
        self.pieceFirst = min(max(pieceFirst, self.pieceMin), self.pieceMax)
        self.delayFirst = max(.zero, delayFirst)
        self.delayMax = max(.zero, delayMax)
        self.retryAfterMax = max(.zero, retryAfterMax)
        self.mismatchesMax = mismatchesMax
        self.lossesMax = lossesMax
        self.downloadPiece = downloadPiece.map { max(1, $0) }
    }

    /// Returns the delay after a number of failures in a row.
    func delay(afterFailures failures: Int, random: inout RandomStream) -> Nanoseconds {
        var whole = min(delayFirst.count, delayMax.count)
        // 63 doublings exceed every delay.
        for _ in 0..<min(max(0, failures - 1), 63) {
            guard whole < delayMax.count else { break }
            whole = whole > delayMax.count / 2 ? delayMax.count : whole * 2
        }
        return Nanoseconds(whole - random.integer(below: whole / 2 + 1))
    }

    /// Returns the size of the piece after one that was cut.
    func halved(_ piece: Int) -> Int { max(pieceMin, piece / 2) }

    /// Returns the size of the piece after one that succeeded: as much as ``pieceTimeMax`` allows at its rate.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes that have taken this time.
    func grown(_ piece: Int, after bytes: Int, in time: Nanoseconds) -> Int {
        let largest = piece > pieceMax / Self.growthMax ? pieceMax : max(piece * Self.growthMax, pieceMin)
        guard time > .zero else { return largest }
        let timed = Double(bytes) * (pieceTimeMax.inSeconds / time.inSeconds)
        return max(pieceMin, Int(min(Double(largest), timed)))
    }
}
