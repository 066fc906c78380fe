internal import Determinism

/// The limits of one connection of a server.
public struct HTTPServerLimits: Hashable, Sendable {
    // MARK: Sizes

    /// The maximum number of bytes of a request body.
    public var bodyBytesMax = 1 << 20
    /// The maximum number of bytes of a request head; the request line may take half of them.
    public var headerBytesMax = 32 << 10
    /// The maximum number of header lines of a request.
    public var headerLinesMax = 100
    /// The maximum number of bytes of a request target or header value that is not ASCII. Comparing such strings is
    /// slow.
    public var nonASCIIBytesMax = 1024
    /// The maximum number of bytes of one read, and therefore of buffered input after a request.
    public var readBytesMax = 16 << 10

    // MARK: Times

    /// The maximum number of seconds for a request head, from the connection's start or the first byte of a later
    /// request.
    public var headSecondsMax = 30.0
    /// The maximum number of seconds between the end of a response and the first byte of the next request.
    public var idleSecondsMax = 60.0
    /// The minimum rate of a request body, measured over each ``bodyWindowSeconds``.
    public var bodyBytesPerSecondMin = 250
    /// The window over which the rate of a request body is measured.
    public var bodyWindowSeconds = 30.0
    /// The minimum rate at which a client receives a response. Each write must complete within
    /// ``responseStallSecondsMax`` plus the time for its bytes at this rate.
    public var responseBytesPerSecondMin = 200
    /// The constant part of a write's deadline in seconds, see ``responseBytesPerSecondMin``.
    public var responseStallSecondsMax = 60.0
    /// The maximum number of seconds for which input is read and dropped after the last response. Closing earlier
    /// would reset the connection and could destroy that response (RFC 9112, 9.6).
    public var lingerSecondsMax = 5.0
    /// The maximum number of bytes read and dropped in that time.
    public var lingerBytesMax = 16 << 20

    /// Creates the default limits.
    public init() {}

    /// The limits of the parser. A body has its limit in the machine, because a request may lower it.
    var parserLimits: HTTPLimits {
        var limits = HTTPLimits.standard
        limits.startLine = headerBytesMax / 2
        limits.headers = headerBytesMax - limits.startLine
        limits.headerCount = headerLinesMax
        return limits
    }

    /// The maximum input that is buffered while no body is being read: a head and one read, and more after a FIN,
    /// because SwiftNIO then reads everything that the kernel holds.
    var inputBytesMax: Int {
        Int(clamping: Int64(headerBytesMax).addingSaturating(Int64(readBytesMax).multipliedSaturating(by: 4)))
    }

    /// Returns the time in which a write of a number of bytes must complete.
    func writeTimeout(bytes: Int) -> Nanoseconds {
        Self.span(responseStallSecondsMax + Double(bytes) / Double(max(1, responseBytesPerSecondMin)))
    }

    /// Returns whether a number of bytes received in one window meets the minimum rate of a body.
    func isFastEnough(bytesInWindow: Int) -> Bool {
        Double(bytesInWindow) >= bodyWindowSeconds * Double(bodyBytesPerSecondMin)
    }

    /// Returns a number of seconds as a span, clamped to what a span can hold.
    static func span(_ seconds: Double) -> Nanoseconds {
        let count = (seconds * 1e9).rounded(.towardZero)
        guard count > 0 else { return .zero }
        return Nanoseconds(Int64(exactly: count) ?? .max)
    }
}
