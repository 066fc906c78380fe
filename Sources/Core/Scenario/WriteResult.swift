/// What the response to a write says about its effect, without texts: read from servers other than the built-in one.
public struct WriteResult: Hashable, Sendable {
    /// A digest of the path of the request.
    public var target: UInt64
    /// Whether the server says that the response is that of an earlier request; `nil` if it says neither.
    public var isReplayed: Bool?
    /// A digest of the identifier of the record that the response names; `nil` if it names none, or only one that the
    /// path of the request names.
    public var record: UInt64?
    /// A digest of the body; `nil` if it is empty, compressed, or was not read to its end.
    public var body: UInt64?

    /// Creates what a response says.
    public init(target: UInt64, isReplayed: Bool? = nil, record: UInt64? = nil, body: UInt64? = nil) {
        self.target = target
        self.isReplayed = isReplayed
        self.record = record
        self.body = body
    }

    func encode(into encoder: inout EventEncoder) {
        encoder.add(target)
        encoder.add(isReplayed)
        encoder.add(record)
        encoder.add(body)
    }
}

extension WriteResult: CustomStringConvertible {
    public var description: String {
        var parts: [String] = []
        if let isReplayed { parts.append(isReplayed ? "replayed" : "not replayed") }
        if let record { parts.append("record \(String(record, radix: 16))") }
        if let body { parts.append("body \(String(body, radix: 16))") }
        return parts.isEmpty ? "nothing about its effect" : parts.joined(separator: ", ")
    }
}
