/// The maximum sizes of the parts of a message.
public struct HTTPLimits: Hashable, Sendable {
    /// Bytes of the start line.
    public var startLine = 8 << 10
    /// Bytes of all header lines.
    public var headers = 64 << 10
    /// Header lines.
    public var headerCount = 200
    /// Bytes of a chunk's size line.
    public var chunkLine = 256
    /// Bytes of the trailers.
    public var trailers = 16 << 10
    /// Bytes of the body; `nil` means unlimited.
    public var body: Int64?

    /// The default limits.
    public static let standard = HTTPLimits()

    /// Creates the default limits.
    public init() {}
}
