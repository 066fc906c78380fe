internal import HTTPTypes
internal import NIOCore

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// The framing of a response body (RFC 9112, 6.3).
enum ResponseFraming: Equatable {
    /// No body: a response to HEAD, 204 or 304. The length is that of the body of a GET, if known.
    case none(length: Int?)
    case length(Int)
    case chunked
    /// The body ends with the connection.
    case close

    /// Chooses the framing of a response.
    ///
    /// - Parameter length: The length of the body; `nil` if it is not known beforehand.
    init(length: Int?, status: Int, isHead: Bool, acceptsChunked: Bool) {
        if status == 204 || status == 304 {
            self = .none(length: nil)
        } else if isHead {
            self = .none(length: length)
        } else if let length {
            self = .length(length)
        } else {
            self = acceptsChunked ? .chunked : .close
        }
    }
}

/// An encoder of HTTP/1.1 responses.
enum ResponseEncoder {
    /// Writes a head. The server sets the framing fields; those of the handler are dropped.
    static func write(
        _ head: HTTPResponse, _ framing: ResponseFraming, connection: String?, into buffer: inout ByteBuffer
    ) {
        let isFraming = { (name: HTTPField.Name) in name == .contentLength || name == .transferEncoding }
        buffer.writeString("HTTP/1.1 \(head.status.code) \(head.status.reasonPhrase)\r\n")
        for field in head.headerFields where !isFraming(field.name) && field.name != .connection {
            buffer.writeString("\(field.name.rawName): \(field.value)\r\n")
        }
        if head.headerFields[.date] == nil { buffer.writeString("Date: \(date())\r\n") }
        switch framing {
        case .none(let length?), .length(let length): buffer.writeString("Content-Length: \(length)\r\n")
        case .chunked: buffer.writeString("Transfer-Encoding: chunked\r\n")
        case .none(nil), .close: break
        }
        if let connection { buffer.writeString("Connection: \(connection)\r\n") }
        buffer.writeString("\r\n")
    }

    /// Writes part of a body.
    static func write(_ part: String, _ framing: ResponseFraming, into buffer: inout ByteBuffer) {
        switch framing {
        case .none: break
        case .length, .close: buffer.writeString(part)
        case .chunked:
            // An empty chunk would end the body.
            if part.isEmpty { return }
            buffer.writeString("\(String(part.utf8.count, radix: 16))\r\n")
            buffer.writeString(part)
            buffer.writeString("\r\n")
        }
    }

    /// Writes the end of a body.
    static func writeEnd(_ framing: ResponseFraming, into buffer: inout ByteBuffer) {
        if framing == .chunked { buffer.writeString("0\r\n\r\n") }
    }

    /// Returns the current time as an HTTP date (RFC 9110, 5.6.7).
    private static func date() -> String {
        var seconds = time(nil)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(weekdays[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) "
            + "\(1900 + parts.tm_year) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }
}
