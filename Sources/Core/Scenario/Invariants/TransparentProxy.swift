/// I18: transparent proxy.
enum TransparentProxy: InvariantCheck {
    static let rule = InvariantRule(
        rule: "Without a fault, a proxy changes no byte and adds no header field.",
        violations: "A byte that has left the link of a device differs from the byte that has entered it at the same "
            + "position of the connection, and no fault has applied to the connection.",
        worlds: "Simulated and live, if the bytes at both ends of each link are compared.",
        blindSpots: "Bytes after a fault of a connection, and bytes of a captive portal.",
        source: "the purpose of a proxy; RFC 9110, section 7.7")

    static func violation(in run: RunFacts) -> InvariantViolation? {
        guard let (index, device, text) = run.firstBytesChanged else { return nil }
        return InvariantViolation("\(text) at \(run.text(at: index))", at: index, of: device)
    }
}
