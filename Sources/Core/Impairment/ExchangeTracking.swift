public import Wire

/// The tracking of the exchanges of a link, and the faults injected into them.
public struct ExchangeTracking: Sendable {
    /// The faults.
    public var rules: [FaultRule]
    /// Returns the subject of a request, from its head and the first ``bodySampleMax`` bytes of its body: a text that
    /// names the resource, such as a note. ``FaultRule/subject`` is compared with it.
    public var subject: @Sendable (HTTPRequestHead, [UInt8]) -> String?
    /// Whether each request waits at the entry of the link for the driver's decision on its faults: after
    /// ``ExchangeEvent/requested(_:_:body:subject:)`` the driver may inject a fault at any point, and then calls
    /// ``SharedLink/admitRequest(_:of:at:)``. Until then, none of the request's bytes enters the link, unless a client
    /// that expects `100 Continue` has sent them later.
    public var awaitsDecisions: Bool

    /// Whether the beginnings of the bodies of responses are reported
    /// (``ExchangeEvent/responseSampled(_:body:)``), except those to GET, HEAD and OPTIONS.
    public var samplesResponses: Bool

    /// Bytes of a request's body that are kept for ``subject``, and of a response's body.
    public static let bodySampleMax = 64 << 10

    /// Creates a configuration.
    public init(
        rules: [FaultRule] = [], awaitsDecisions: Bool = false, samplesResponses: Bool = false,
        subject: @escaping @Sendable (HTTPRequestHead, [UInt8]) -> String? = { _, _ in nil }
    ) {
        self.rules = rules
        self.awaitsDecisions = awaitsDecisions
        self.samplesResponses = samplesResponses
        self.subject = subject
    }
}
