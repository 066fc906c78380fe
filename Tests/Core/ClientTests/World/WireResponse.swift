import Determinism
import NIOCore
import NotesContract
import Wire

/// A response before it is serialised.
struct WireResponse {
    var status: Int
    var headers: [(name: String, value: String)]
    var body: [UInt8]

    /// Returns a response with the marker of a notes server.
    static func notes(_ status: Int, _ body: String = "{}", headers: [(name: String, value: String)] = [])
        -> WireResponse
    {
        WireResponse(
            status: status,
            headers: [(NotesHTTP.markerName, NotesHTTP.markerValue), ("Content-Type", "application/json")] + headers,
            body: Array(body.utf8))
    }

    /// Returns a response of something that is no notes server: a portal, proxy or gateway.
    static func foreign(_ status: Int, headers: [(name: String, value: String)] = []) -> WireResponse {
        WireResponse(
            status: status, headers: [("Content-Type", "text/html")] + headers,
            body: Array("<html><body>\(status)</body></html>".utf8))
    }

    /// Returns the response with another body.
    func with(body: String) -> WireResponse {
        var other = self
        other.body = Array(body.utf8)
        return other
    }

    /// Returns the response with a header replaced, added or, with `nil`, removed.
    func with(_ name: String, _ value: String?) -> WireResponse {
        var other = self
        other.headers.removeAll { $0.name.lowercased() == name.lowercased() }
        if let value { other.headers.append((name, value)) }
        return other
    }

    /// Returns the bytes of the response.
    func serialised(date: String) -> ByteBuffer {
        var fields = headers.filter { !["content-length", "connection"].contains($0.name.lowercased()) }
        if !fields.contains(where: { $0.name.lowercased() == "date" }) { fields.append(("Date", date)) }
        let hasBody = status != 204 && status != 304
        if hasBody { fields.append(("Content-Length", "\(body.count)")) }
        var buffer = ByteBuffer()
        guard let head = try? HTTPResponseHead(status: status, reason: "Status", fields: fields) else { return buffer }
        head.write(into: &buffer)
        if hasBody { buffer.writeBytes(body) }
        return buffer
    }
}

/// A fault of the server or of something on the way to it, for the requests that it matches.
struct HostileRule {
    enum Effect {
        /// The request is not executed; this response is sent.
        case respond(WireResponse)
        /// The request is executed; its response is replaced.
        case replace((WireResponse) -> WireResponse)
        /// The request is not executed; these bytes are sent, then FIN.
        case raw([UInt8])
        /// The request is not executed; the connection is reset.
        case cutRequest
        /// The request is executed; the connection is reset after this part of the response: bytes from its beginning
        /// or, if negative, from its end.
        case cutResponse(after: Int)
        /// As ``cutResponse(after:)`` with FIN.
        case endResponse(after: Int)
        /// No byte is sent.
        case silence(executes: Bool)
        /// The request is executed; its response is delayed.
        case delay(Nanoseconds)
    }

    var method: String?
    /// The devices; `nil` matches all.
    var devices: Set<String>?
    var matches: (String) -> Bool
    /// The numbers of the matching requests, from 1.
    var nth = 1...Int.max
    var effect: Effect
    var matchedRequests = 0

    init(_ effect: Effect, nth: ClosedRange<Int> = 1...Int.max) { self.init(nil, nth: nth, effect) }

    init(
        _ method: String?, from devices: Set<String>? = nil, nth: ClosedRange<Int> = 1...Int.max,
        _ effect: Effect, where matches: @escaping (String) -> Bool = { _ in true }
    ) {
        self.method = method
        self.devices = devices
        self.matches = matches
        self.nth = nth
        self.effect = effect
    }
}
