internal import HTTPTypes
internal import Wire

/// A request with its decoded parts.
struct FieldRequest {
    let method: String
    /// The segments of the path after that of the service.
    let segments: [String]
    let body: [UInt8]
    /// The milliseconds since 1970 of the server's clock.
    let milliseconds: Int
    private let fields: HTTPFields

    init(_ http: HTTPRequest, body: [UInt8], milliseconds: Int) {
        method = http.method.rawValue
        let path = (http.path ?? "").prefix { $0 != "?" }
        segments = path.split(separator: "/").dropFirst().map(String.init)
        fields = http.headerFields
        self.body = body
        self.milliseconds = milliseconds
    }

    /// The value of a header field; `nil` if there is none.
    func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { fields[$0] } }

    /// A header field that is a whole number, not negative.
    func number(_ name: String) -> Int? { field(name).flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil } }

    /// A header field that is a structured boolean, `?0` or `?1` (RFC 9651).
    func boolean(_ name: String) -> Bool? {
        switch field(name) {
        case "?1"?: true
        case "?0"?: false
        default: nil
        }
    }

    /// The first range of bytes that `Range` asks for (RFC 9110, 14.1.2); `nil` if there is none, or several.
    ///
    /// - Returns: The positions; without `last` up to the end, without `first` the number of bytes at the end.
    var range: (first: Int?, last: Int?)? {
        guard let text = field("Range"), text.hasPrefix("bytes="), !text.contains(",") else { return nil }
        let parts = text.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let (first, last) = (Int(parts[0]), Int(parts[1]))
        guard first != nil || parts[0].isEmpty, last != nil || parts[1].isEmpty, first != nil || last != nil else {
            return nil
        }
        if let first, let last, last < first { return nil }
        return (first, last)
    }
}
