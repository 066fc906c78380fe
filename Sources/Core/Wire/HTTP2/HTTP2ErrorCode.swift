/// An error code of a stream or a connection (RFC 9113, section 7).
public struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let noError = HTTP2ErrorCode(rawValue: 0)
    public static let protocolError = HTTP2ErrorCode(rawValue: 1)
    public static let internalError = HTTP2ErrorCode(rawValue: 2)
    public static let frameSizeError = HTTP2ErrorCode(rawValue: 6)
    public static let refusedStream = HTTP2ErrorCode(rawValue: 7)
    public static let cancel = HTTP2ErrorCode(rawValue: 8)
    public static let compressionError = HTTP2ErrorCode(rawValue: 9)
    public static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 11)

    /// The names of the codes in the registry, in the order of their values.
    public static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]

    /// Creates the code with a name of the registry; `nil` for an unknown name.
    public init?(name: String) {
        guard let index = Self.names.firstIndex(of: name) else { return nil }
        rawValue = UInt32(index)
    }

    public var description: String {
        rawValue < UInt32(Self.names.count) ? Self.names[Int(rawValue)] : "error code \(rawValue)"
    }
}

/// An error in the bytes of an HTTP/2 connection.
public struct HTTP2Error: Error, Hashable, Sendable, CustomStringConvertible {
    /// The code that RFC 9113 or RFC 7541 names for the error.
    public let code: HTTP2ErrorCode
    /// The reason.
    public let reason: String
    /// The offset of the frame in the stream of bytes.
    public let offset: Int64

    /// Creates an error.
    public init(code: HTTP2ErrorCode, reason: String, offset: Int64) {
        self.code = code
        self.reason = reason
        self.offset = offset
    }

    public var description: String { "HTTP/2: \(reason) at byte \(offset) (\(code))" }
}
