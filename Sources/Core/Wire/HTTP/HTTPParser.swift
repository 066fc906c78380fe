internal import HTTPTypes
public import NIOCore

/// A parser of the messages in a stream of bytes, which may arrive in pieces of any size.
///
/// A state machine without deadlines: the bytes received, the requests sent and the end of the stream are its inputs;
/// ``takePart()`` returns the parts of messages.
///
/// The parser is strict where lenient parsers disagree about the end of a message (RFC 9112, 11.2): lines end with
/// CR LF; Content-Length with Transfer-Encoding and folded lines are rejected. After an error every call throws that
/// error.
public struct HTTPParser: Sendable {
    /// The kind of messages in the stream.
    public enum Side: Hashable, Sendable { case requests, responses }

    private enum State: Hashable {
        case start, length(Int64), chunkLine, chunk(Int64), chunkEnd, trailers, untilClose, opaque, failed(HTTPError)
    }

    private let side: Side
    private let limits: HTTPLimits
    private let checksIncompleteHeads: Bool
    private var buffer = ByteBuffer()
    private var state = State.start
    /// The offset of the first byte in the buffer.
    private var offset: Int64 = 0
    /// The bytes at the front of the buffer that have been searched for the end of the head.
    private var searched = 0
    /// The bytes at the front of the buffer that have been searched for the end of the start line; `nil` if the start
    /// line has been checked.
    private var startSearched: Int? = 0
    private var bodyBytes: Int64 = 0
    /// The offset of the current message's first byte after its head.
    private var bodyStart: Int64 = 0
    private var emptyLines = 0
    /// Methods of requests without a final response, the oldest first.
    private var methods: [String] = []
    private var streamHasEnded = false
    /// Whether the next part is the end of the current message.
    private var isAtEnd = false
    /// The framing of the current message's body.
    public private(set) var framing = HTTPBodyFraming.none

    /// The number of bytes at the start of an incomplete request that are checked.
    private static let methodBytesChecked = 32
    /// The maximum number of empty lines before a request that are skipped (RFC 9112, 2.2).
    private static let emptyLinesMax = 4
    /// The maximum number of parsed bytes that stay at the front of the buffer before it is compacted. A chunked body
    /// rarely leaves the buffer empty, which would free them all.
    private static let readBytesKeptMax = 16 << 10
    /// The limit on the raw bytes of a chunked body: a number per decoded byte, plus a constant. A chunk of 1 byte
    /// takes 6 raw bytes.
    private static let (rawBytesPerByteMax, rawBytesMax): (Int64, Int64) = (8, 64 << 10)

    /// Creates the parser of a new stream.
    ///
    /// - Parameter checksIncompleteHeads: Whether bytes that cannot begin a head are an error before the head is
    ///   complete, so that an observer recognises other protocols at once. The error of a malformed head then depends
    ///   on the pieces in which it arrives.
    public init(_ side: Side, limits: HTTPLimits = .standard, checksIncompleteHeads: Bool = false) {
        self.side = side
        self.limits = limits
        self.checksIncompleteHeads = checksIncompleteHeads
    }

    // MARK: Inputs

    /// Reports that a request was sent. Its method determines the framing of the response: HEAD has no body, CONNECT
    /// may open a tunnel.
    public mutating func requestSent(method: String) { methods.append(method) }

    /// Reports bytes of the stream.
    public mutating func received(_ bytes: ByteBuffer) {
        var bytes = bytes
        if case .failed = state { return }
        if buffer.readerIndex > Self.readBytesKeptMax { buffer.discardReadBytes() }
        buffer.writeBuffer(&bytes)
    }

    /// Reports the end of the stream.
    public mutating func streamEnded() { streamHasEnded = true }

    // MARK: Outputs

    /// Bytes received that are not part of a returned part.
    public var bytesKept: Int { buffer.readableBytes }

    /// Whether a message has begun and has not ended.
    public var isInsideMessage: Bool { state != .start && state != .opaque || buffer.readableBytes > 0 }

    /// Whether the bytes that follow are not HTTP, after CONNECT or an upgrade.
    public var isOpaque: Bool { state == .opaque }

    /// Returns the next part; `nil` if more bytes are needed.
    public mutating func takePart() throws(HTTPError) -> HTTPPart? {
        do throws(HTTPError) {
            return try parse()
        } catch {
            state = .failed(error)
            buffer = ByteBuffer()
            throw error
        }
    }

    private mutating func parse() throws(HTTPError) -> HTTPPart? {
        if case .failed(let error) = state { throw error }
        if isAtEnd {
            isAtEnd = false
            state = .start
            return .end(offset)
        }
        while true {
            switch state {
            case .failed(let error): throw error
            case .start:
                if side == .requests, try skipEmptyLine() { continue }
                return try parseHead()
            case .length(let left): return try parseBody(left: left, next: .start) { .length($0) }
            case .chunkLine:
                guard let size = try parseChunkLine() else { return try endedEarly() }
                state = size == 0 ? .trailers : .chunk(size)
            case .chunk(let left): return try parseBody(left: left, next: .chunkEnd) { .chunk($0) }
            case .chunkEnd:
                guard buffer.readableBytes >= 2 else { return try endedEarly() }
                guard buffer.readBytes(length: 2) == [13, 10] else { throw .badChunk }
                offset += 2
                state = .chunkLine
            case .trailers:
                guard let (head, range) = try readLines(max: limits.trailers, what: "the trailers") else {
                    return try endedEarly()
                }
                isAtEnd = true
                if head.lines.isEmpty { return try parse() }
                return .trailers(try Self.fields(head, after: 0, limits), range)
            case .untilClose:
                if let piece = readPiece(atMost: .max) { return try body(piece) }
                guard streamHasEnded else { return nil }
                isAtEnd = true
                return try parse()
            case .opaque:
                guard let (bytes, range) = readPiece(atMost: .max) else { return nil }
                return .opaque(bytes, range)
            }
        }
    }

    // MARK: Bodies

    private mutating func parseBody(left: Int64, next: State, _ rest: (Int64) -> State) throws(HTTPError) -> HTTPPart? {
        guard let piece = readPiece(atMost: left) else { return try endedEarly() }
        let remaining = left - Int64(piece.0.readableBytes)
        if remaining > 0 {
            state = rest(remaining)
        } else if next == .start {
            isAtEnd = true
        } else {
            state = next
        }
        return try body(piece)
    }

    private mutating func body(_ piece: (ByteBuffer, Range<Int64>)) throws(HTTPError) -> HTTPPart {
        bodyBytes += Int64(piece.0.readableBytes)
        if let max = limits.body, bodyBytes > max { throw .tooLarge("the body") }
        return .body(piece.0, piece.1)
    }

    private mutating func readPiece(atMost limit: Int64) -> (ByteBuffer, Range<Int64>)? {
        let size = Int(min(Int64(buffer.readableBytes), limit))
        guard size > 0, let piece = buffer.readSlice(length: size) else { return nil }
        let start = offset
        offset += Int64(size)
        if buffer.readableBytes == 0 { buffer = ByteBuffer() }
        return (piece, start..<offset)
    }

    private mutating func parseChunkLine() throws(HTTPError) -> Int64? {
        guard let line = try readLine(max: limits.chunkLine, what: "a chunk's size line") else { return nil }
        guard offset - bodyStart <= Self.rawBytesPerByteMax * bodyBytes + Self.rawBytesMax else { throw .badChunk }
        var size: Int64 = 0
        var digits = 0
        for byte in line {
            guard let digit = Self.hexadecimal(byte) else { break }
            digits += 1
            guard digits <= 15 else { throw .badChunk }
            size = size << 4 | Int64(digit)
        }
        let rest = line.dropFirst(digits)
        // An extension begins with a semicolon, possibly after spaces.
        let isPlain = rest.isEmpty || rest.first { $0 != 32 && $0 != 9 } == UInt8(ascii: ";")
        guard digits > 0, isPlain, rest.allSatisfy(HTTPSyntax.isText) else { throw .badChunk }
        return size
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    private func endedEarly() throws(HTTPError) -> HTTPPart? {
        if streamHasEnded { throw .endedEarly }
        return nil
    }

    // MARK: Heads

    private mutating func skipEmptyLine() throws(HTTPError) -> Bool {
        guard buffer.readableBytes >= 1, buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) == 13 else {
            return false
        }
        guard buffer.readableBytes >= 2 else { return false }
        guard buffer.getInteger(at: buffer.readerIndex + 1, as: UInt8.self) == 10, emptyLines < Self.emptyLinesMax
        else {
            throw .badStartLine
        }
        emptyLines += 1
        buffer.moveReaderIndex(forwardBy: 2)
        offset += 2
        return true
    }

    private mutating func parseHead() throws(HTTPError) -> HTTPPart? {
        let max = limits.startLine + limits.headers
        guard let (head, range) = try readLines(max: max, what: "the head") else {
            if streamHasEnded && buffer.readableBytes > 0 { throw .endedEarly }
            if checksIncompleteHeads { try checkStart() }
            return nil
        }
        startSearched = 0
        guard let line = head.lines.first else { throw .badStartLine }
        let first = head.bytes[line]
        guard first.count <= limits.startLine else { throw .tooLarge("the start line") }
        let fields = try Self.fields(head, after: 1, limits)
        emptyLines = 0
        bodyBytes = 0
        return side == .requests
            ? try takeRequest(first, fields, range) : try takeResponse(first, fields, range)
    }

    /// Throws if the bytes of an incomplete head cannot begin a message. Other protocols are recognised by their first
    /// bytes or their first line, without waiting for the end of a head.
    private mutating func checkStart() throws(HTTPError) {
        guard let searched = startSearched else { return }
        let view = buffer.readableBytesView
        // The start of an empty line before a request.
        if view.isEmpty || (side == .requests && view.count == 1 && view.first == 13) { return }
        let protocolName = "HTTP/".utf8
        let isPossible: Bool
        if let lineFeed = view.dropFirst(searched).firstIndex(of: 10) {
            startSearched = nil
            let line = view[..<lineFeed]
            let start =
                side == .responses ? line.startIndex : line.lastIndex(of: 32).map { $0 + 1 } ?? line.endIndex
            isPossible = line[start...].starts(with: protocolName)
        } else {
            startSearched = view.count
            isPossible =
                side == .responses
                ? protocolName.starts(with: view.prefix(protocolName.count))
                : view.prefix(Self.methodBytesChecked).prefix { $0 != 32 }.allSatisfy(HTTPSyntax.isTokenByte)
                    && view.first != 32
        }
        if !isPossible { throw .badStartLine }
    }

    private mutating func takeRequest(
        _ line: ArraySlice<UInt8>, _ fields: HTTPFields, _ range: Range<Int64>
    ) throws(HTTPError) -> HTTPPart {
        // Three words with one space between two of them.
        guard let first = line.firstIndex(of: 32), let last = line.lastIndex(of: 32), first < last,
            let method = HTTPRequest.Method(String(decoding: line[..<first], as: UTF8.self))
        else { throw .badStartLine }
        let target = line[(first + 1)..<last]
        guard !target.isEmpty, target.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { throw .badStartLine }
        let version = try Self.version(line[(last + 1)...])
        let head = HTTPRequestHead(
            method: method, target: String(decoding: target, as: UTF8.self), version: version, fields: fields)
        switch try Self.length(fields) {
        case .chunked: frame(.chunked)
        case .length(let length) where length > 0: frame(.length(length))
        default: frame(.none)
        }
        return .requestHead(head, range)
    }

    private mutating func takeResponse(
        _ slice: ArraySlice<UInt8>, _ fields: HTTPFields, _ range: Range<Int64>
    ) throws(HTTPError) -> HTTPPart {
        let line = Array(slice)
        let version = try Self.version(slice.prefix { $0 != 32 })
        guard line.count >= 12, line[8] == 32, line.count == 12 || line[12] == 32,
            line[9...11].allSatisfy({ (48...57).contains($0) }), line[9] >= 49, line.allSatisfy(HTTPSyntax.isText)
        else { throw .badStartLine }
        let status = line[9...11].reduce(0) { $0 * 10 + Int($1) - 48 }
        let text = line.dropFirst(13)
        // Each byte is a character (ISO 8859-1).
        let reason =
            text.allSatisfy { $0 < 0x80 }
            ? String(decoding: text, as: UTF8.self)
            : String(String.UnicodeScalarView(text.map { Unicode.Scalar($0) }))
        let head = HTTPResponseHead(version: version, status: status, reason: reason, fields: fields)
        guard let method = methods.first else { throw .unexpectedResponse }
        if (100...199).contains(status) && status != 101 {
            return .responseHead(head, range, isInterim: true)
        }
        methods.removeFirst()
        let framing = try Self.length(fields)
        if status == 101 || (method == "CONNECT" && (200...299).contains(status)) {
            self.framing = .none
            state = .opaque
        } else if method == "HEAD" || status == 204 || status == 304 {
            frame(.none)
        } else if framing == .length(0) {
            frame(.none)
        } else {
            frame(framing == .none ? .untilClose : framing)
        }
        return .responseHead(head, range, isInterim: false)
    }

    private mutating func frame(_ framing: HTTPBodyFraming) {
        self.framing = framing
        bodyStart = offset
        switch framing {
        case .none: isAtEnd = true
        case .length(let length): state = .length(length)
        case .chunked: state = .chunkLine
        case .untilClose: state = .untilClose
        }
    }

    private static let versionPrefix = Array("HTTP/1.".utf8)

    private static func version(_ bytes: ArraySlice<UInt8>) throws(HTTPError) -> HTTPVersion {
        if bytes.count == versionPrefix.count + 1, bytes.starts(with: versionPrefix) {
            if bytes.last == UInt8(ascii: "1") { return .http11 }
            if bytes.last == UInt8(ascii: "0") { return .http10 }
        }
        throw bytes.starts(with: versionPrefix.prefix(5)) ? .badVersion : .badStartLine
    }

    /// Returns the framing that the header fields declare; `none` if they declare none.
    private static func length(_ fields: HTTPFields) throws(HTTPError) -> HTTPBodyFraming {
        let lengths = fields[values: .contentLength]
        let codings = fields[values: .transferEncoding]
        if !codings.isEmpty {
            guard lengths.isEmpty else { throw .badLength }
            guard codings.count == 1, HTTPSyntax.isSame(codings[0], "chunked") else { throw .unknownCoding }
            return .chunked
        }
        guard let first = lengths.first else { return .none }
        guard lengths.allSatisfy({ $0.utf8.elementsEqual(first.utf8) }), (1...18).contains(first.utf8.count),
            first.utf8.allSatisfy({ (48...57).contains($0) }), let length = Int64(first)
        else { throw .badLength }
        return .length(length)
    }

    /// The lines of a head or of trailers, without their CR LF.
    private struct Lines {
        let bytes: [UInt8]
        var lines: [Range<Int>] = []
    }

    /// Returns the fields of the lines after some others.
    private static func fields(
        _ head: Lines, after count: Int, _ limits: HTTPLimits
    ) throws(HTTPError) -> HTTPFields {
        guard head.lines.count - count <= limits.headerCount else { throw .tooLarge("the number of headers") }
        var fields = HTTPFields()
        fields.reserveCapacity(head.lines.count - count)
        let isValid = head.bytes.withUnsafeBufferPointer { bytes in
            for line in head.lines.dropFirst(count) {
                guard let parsed = field(UnsafeBufferPointer(rebasing: bytes[line])) else { return false }
                fields.append(parsed)
            }
            return true
        }
        guard isValid else { throw .badHeader }
        return fields
    }

    /// Returns the field of a line; `nil` if it is malformed.
    private static func field(_ line: UnsafeBufferPointer<UInt8>) -> HTTPField? {
        var colon = 0
        while colon < line.count, line[colon] != UInt8(ascii: ":") { colon += 1 }
        guard colon < line.count else { return nil }
        var all: UInt8 = 0
        var index = colon
        while true {
            index = HTTPSyntax.firstSpecial(in: UnsafeRawBufferPointer(line), from: index)
            if index == line.count { break }
            guard HTTPSyntax.isText(line[index]) else { return nil }
            all |= line[index]
            index += 1
        }
        guard let name = HTTPFieldNames.name(UnsafeBufferPointer(rebasing: line[..<colon])) else { return nil }
        var (start, end) = (colon + 1, line.count)
        while start < end, HTTPSyntax.isSpace(line[start]) { start += 1 }
        while start < end, HTTPSyntax.isSpace(line[end - 1]) { end -= 1 }
        let value = UnsafeBufferPointer(rebasing: line[start..<end])
        // A value of bytes is copied once for each access; few values have other characters.
        return all < 0x80
            ? HTTPField(name: name, value: String(decoding: value, as: UTF8.self))
            : HTTPField(name: name, value: value)
    }

    // MARK: Lines

    /// Reads lines up to and including the first empty line; returns `nil` if it has not arrived.
    private mutating func readLines(
        max: Int, what: String
    ) throws(HTTPError) -> (head: Lines, range: Range<Int64>)? {
        let start = Swift.max(0, searched - 3)
        let search = buffer.withUnsafeReadableBytes { Self.searchEnd(of: $0, from: start, max: max) }
        let end: Int
        switch search {
        case .end(let found): end = found
        case .tooLarge: throw .tooLarge(what)
        case .badLineEnd: throw .badLineEnd
        case .incomplete:
            if buffer.readableBytes > max { throw .tooLarge(what) }
            searched = buffer.readableBytes
            return nil
        }
        searched = 0
        let bytes = buffer.withUnsafeReadableBytes { [UInt8]($0.prefix(end)) }
        buffer.moveReaderIndex(forwardBy: end)
        let begin = offset
        offset += Int64(end)
        if buffer.readableBytes == 0 {
            buffer = ByteBuffer()
        } else if buffer.readerIndex > Self.readBytesKeptMax {
            buffer.discardReadBytes()
        }
        var lines: [Range<Int>] = []
        lines.reserveCapacity(16)
        var lineStart = 0
        var isValid = true
        bytes.withUnsafeBytes { all in
            var index = HTTPSyntax.firstSpecial(in: all, from: 0)
            while index < end - 2 {
                if all[index] == 10 {
                    lines.append(lineStart..<(index - 1))
                    // A folded line.
                    if all[lineStart] == 32 || all[lineStart] == 9 { isValid = false }
                    lineStart = index + 1
                } else if all[index] == 13, all[index + 1] != 10 {
                    // A bare CR.
                    isValid = false
                }
                index = HTTPSyntax.firstSpecial(in: all, from: index + 1)
            }
        }
        guard isValid else { throw .badHeader }
        return (Lines(bytes: bytes, lines: lines), begin..<offset)
    }

    /// The result of a search for the end of a head.
    private enum HeadEnd {
        /// The number of bytes up to the end of the first empty line.
        case end(Int)
        case incomplete
        case tooLarge
        case badLineEnd
    }

    /// Searches for the end of a head: LF CR LF, or an empty first line.
    private static func searchEnd(of bytes: UnsafeRawBufferPointer, from start: Int, max: Int) -> HeadEnd {
        if bytes.count >= 2, bytes[0] == 13, bytes[1] == 10 { return .end(2) }
        var index = HTTPSyntax.firstSpecial(in: bytes, from: start)
        while index < bytes.count {
            if bytes[index] == 10 {
                if index > max { return .tooLarge }
                guard index >= 1, bytes[index - 1] == 13 else { return .badLineEnd }
                if index >= 3, bytes[index - 2] == 10 { return .end(index + 1) }
            }
            index = HTTPSyntax.firstSpecial(in: bytes, from: index + 1)
        }
        return .incomplete
    }

    /// Reads a line and returns it without its CR LF; `nil` if it has not been received.
    private mutating func readLine(max: Int, what: String) throws(HTTPError) -> [UInt8]? {
        let view = buffer.readableBytesView
        guard let lineFeed = view.prefix(max + 2).firstIndex(of: 10) else {
            if view.count > max + 1 { throw .tooLarge(what) }
            return nil
        }
        let length = lineFeed - view.startIndex
        guard length >= 1, view[lineFeed - 1] == 13 else { throw .badLineEnd }
        let line = [UInt8](view.prefix(length - 1))
        buffer.moveReaderIndex(forwardBy: length + 1)
        offset += Int64(length + 1)
        return line
    }
}
