public import HTTPWire

/// The tracking of the exchanges of a link, and the faults injected into them.
public struct ExchangeTracking: Sendable {
    /// The faults.
    public var rules: [FaultRule]
    /// Returns the subject of a request, from its head and the first ``bodySampleMax`` bytes of its body: a text that
    /// names the resource, such as a note. ``FaultRule/subject`` is compared with it.
    public var subject: @Sendable (HTTPRequestHead, [UInt8]) -> String?

    /// Bytes of a request's body that are kept for ``subject``.
    public static let bodySampleMax = 64 << 10

    /// Creates a configuration.
    public init(
        rules: [FaultRule] = [], subject: @escaping @Sendable (HTTPRequestHead, [UInt8]) -> String? = { _, _ in nil }
    ) {
        self.rules = rules
        self.subject = subject
    }
}
