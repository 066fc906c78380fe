public import Determinism

/// An HTTP Archive (HAR 1.2), for the network panels of browsers and other readers: without header fields and bodies.
/// Members of our own begin with `_`.
public enum HTTPArchive {
    /// A request with its response.
    public struct Entry: Sendable {
        /// The page; `nil` for none.
        public var page: String?
        /// The start in the format of ISO 8601.
        public var started: String
        public var method: String
        public var url: String
        /// The version of HTTP, as browsers write it.
        public var httpVersion = "HTTP/1.1"
        /// The number of bytes of the request's body.
        public var requestBytes: Int64 = 0
        /// The status; `nil` without a response.
        public var status: Int?
        /// The number of bytes of the response's body.
        public var responseBytes: Int64 = 0
        public var mimeType = "x-unknown"
        /// The time of the connection attempt; `nil` for an open connection.
        public var connect: Nanoseconds?
        /// The times until the server has the request, until the client has the first byte of the response, and until
        /// it has the last one.
        public var send = Nanoseconds.zero
        public var wait = Nanoseconds.zero
        public var receive = Nanoseconds.zero
        public var connection: String?
        /// Further members, with values that are JSON text.
        public var members: [(key: String, value: String)] = []
        /// The reason for which there is no response.
        public var error: String?

        public init(started: String, method: String, url: String) {
            self.started = started
            self.method = method
            self.url = url
        }

        /// The JSON text.
        public var text: String {
            let timings = JSONText.object([
                ("blocked", "-1"), ("dns", "-1"), ("connect", connect.map(milliseconds) ?? "-1"), ("ssl", "-1"),
                ("send", milliseconds(send)), ("wait", milliseconds(wait)), ("receive", milliseconds(receive)),
            ])
            let request = JSONText.object([
                ("method", JSONText.string(method)), ("url", JSONText.string(url)),
                ("httpVersion", JSONText.string(httpVersion)), ("cookies", "[]"), ("headers", "[]"),
                ("queryString", "[]"), ("headersSize", "-1"), ("bodySize", "\(requestBytes)"),
            ])
            let content = JSONText.object([
                ("size", "\(responseBytes)"), ("mimeType", JSONText.string(mimeType)),
            ])
            let response = JSONText.object([
                ("status", "\(status ?? 0)"), ("statusText", JSONText.string("")),
                ("httpVersion", JSONText.string(httpVersion)), ("cookies", "[]"), ("headers", "[]"),
                ("content", content), ("redirectURL", JSONText.string("")), ("headersSize", "-1"),
                ("bodySize", "\(responseBytes)"),
            ])
            let total = (connect ?? .zero) + send + wait + receive
            var all: [(key: String, value: String)] = page.map { [("pageref", JSONText.string($0))] } ?? []
            all += [
                ("startedDateTime", JSONText.string(started)), ("time", milliseconds(total)), ("request", request),
                ("response", response), ("cache", "{}"), ("timings", timings),
            ]
            if let connection { all.append(("connection", JSONText.string(connection))) }
            all += members
            if let error { all.append(("_error", JSONText.string(error))) }
            return JSONText.object(all)
        }

        private func milliseconds(_ span: Nanoseconds) -> String { JSONText.number(Double(span.count) / 1_000_000) }
    }

    /// Returns the text before the entries and the text after them, which are separated by commas.
    ///
    /// - Parameter pages: The pages as JSON texts.
    public static func frame(version: String, pages: [String] = [], comment: String) -> (head: String, tail: String) {
        let creator = JSONText.object([("name", JSONText.string("slowlane")), ("version", JSONText.string(version))])
        let head = #"{"log":{"version":"1.2","creator":"# + creator + #","pages":"# + JSONText.array(pages)
        return (head + #","entries":["#, #"],"comment":"# + JSONText.string(comment) + "}}")
    }
}
