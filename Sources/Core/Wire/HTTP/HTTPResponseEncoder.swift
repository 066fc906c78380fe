internal import HTTPTypes
internal import NIOCore

/// The framing of a response body (RFC 9112, 6.3), as chosen by a server.
enum HTTPResponseFraming: Hashable {
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
enum HTTPResponseEncoder {
    /// Writes a head. The server sets the framing fields; those of the handler are dropped.
    ///
    /// - Parameter unixTime: The seconds since 1970 for `Date`; `nil` omits the field.
    static func write(
        _ head: HTTPResponse, _ framing: HTTPResponseFraming, connection: String?, unixTime: Int64?,
        into buffer: inout ByteBuffer
    ) {
        let isFraming = { (name: HTTPField.Name) in name == .contentLength || name == .transferEncoding }
        // One array of bytes is written faster than many texts.
        var text: [UInt8] = []
        text.reserveCapacity(512)
        text += "HTTP/1.1 \(head.status.code) \(head.status.reasonPhrase)\r\n".utf8
        for field in head.headerFields where !isFraming(field.name) && field.name != .connection {
            text += field.name.rawName.utf8
            text += ": ".utf8
            text += field.value.utf8
            text += "\r\n".utf8
        }
        if let unixTime, head.headerFields[.date] == nil {
            text += "Date: \(HTTPDate.text(unixTime: unixTime))\r\n".utf8
        }
        switch framing {
        case .none(let length?), .length(let length): text += "Content-Length: \(length)\r\n".utf8
        case .chunked: text += "Transfer-Encoding: chunked\r\n".utf8
        case .none(nil), .close: break
        }
        if let connection { text += "Connection: \(connection)\r\n".utf8 }
        text += "\r\n".utf8
        buffer.writeBytes(text)
    }

    /// Writes part of a body.
    static func write(_ part: String, _ framing: HTTPResponseFraming, into buffer: inout ByteBuffer) {
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
    static func writeEnd(_ framing: HTTPResponseFraming, into buffer: inout ByteBuffer) {
        if framing == .chunked { buffer.writeString("0\r\n\r\n") }
    }
}
