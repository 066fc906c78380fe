internal import HTTPTypes
internal import NIOCore

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// How a response's body ends (RFC 9112, 6.3).
enum ResponseFraming: Equatable {
    /// There is none, whatever the head says: a response to HEAD, and 204 and 304. The length is what a GET would get.
    case none(length: Int?)
    case length(Int)
    case chunked
    /// With the connection.
    case close

    /// The framing of a response whose body has a length or, if `nil`, an end that shows only when it is there.
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

/// Writes responses.
enum ResponseEncoder {
    /// Writes a head. The fields that frame the message are the host's, not the handler's.
    static func write(
        _ head: HTTPResponse, _ framing: ResponseFraming, connection: String?, into buffer: inout ByteBuffer
    ) {
        let isLength = { (name: HTTPField.Name) in name == .contentLength || name == .transferEncoding }
        buffer.writeString("HTTP/1.1 \(head.status.code) \(head.status.reasonPhrase)\r\n")
        for field in head.headerFields where !isLength(field.name) && field.name != .connection {
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

    /// Writes a piece of a body.
    static func write(_ piece: String, _ framing: ResponseFraming, into buffer: inout ByteBuffer) {
        switch framing {
        case .none: break
        case .length, .close: buffer.writeString(piece)
        case .chunked:
            // An empty chunk would be the last.
            if piece.isEmpty { return }
            buffer.writeString("\(String(piece.utf8.count, radix: 16))\r\n")
            buffer.writeString(piece)
            buffer.writeString("\r\n")
        }
    }

    /// Writes the end of a body.
    static func writeEnd(_ framing: ResponseFraming, into buffer: inout ByteBuffer) {
        if framing == .chunked { buffer.writeString("0\r\n\r\n") }
    }

    /// The time as HTTP writes it (RFC 9110, 5.6.7).
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
