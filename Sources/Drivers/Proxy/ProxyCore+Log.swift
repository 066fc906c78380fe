internal import Determinism
internal import Impairment
internal import LinkModel
internal import Logging
internal import NIOCore

/// Log messages about faults and timelines.
extension ProxyCore {
    /// The bytes of a reply's body in a message.
    private static let bodyBytesMax = 40
    /// Changes of a timeline within this time after a message have none of their own.
    private static let timelineMessageInterval = TimeAmount.milliseconds(500)

    /// Returns the message about a fault.
    static func text(_ fault: FaultReport) -> String {
        let rule = printable(fault.rule.text(bodyBytesMax: bodyBytesMax))
        let request = printable(fault.request)
        if let pings = fault.pings {
            return "'\(rule)': \(request): the client has acknowledged \(pings.acknowledged) of \(pings.sent) PING"
        }
        guard let offset = fault.offset else {
            return "fault did not fire: '\(rule)': \(request) did not reach \(fault.point.rawValue)"
        }
        if let point = fault.rule.handshake?.rawValue ?? fault.rule.stream?.point.rawValue {
            return "fault fired: '\(rule)': \(request) at \(point) after \(offset) B (\(fault.fired) so far)"
        }
        let message = fault.point <= .beforeRequestEnd ? "request" : "response"
        return "fault fired: '\(rule)': \(request) at \(fault.point.rawValue) after \(offset) B of the \(message) "
            + "(\(fault.fired) so far)"
    }

    /// Returns a text with control characters replaced.
    static func printable(_ text: String) -> String {
        var printable = ""
        for scalar in text.unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
            printable.unicodeScalars.append(isControl ? "?" : scalar)
        }
        return printable
    }

    func logTimelineChange(_ position: TimelineRun.Position) {
        let now = NIODeadline.now()
        if let last = lastTimelineMessage, now - last < Self.timelineMessageInterval { return }
        lastTimelineMessage = now
        var text = "timeline at \(Self.seconds(position.time)): "
        text += position.isRamping ? "ramp to \(position.name)" : position.name
        if let name = position.nextName, let time = position.nextChange { text += ", \(name) in \(Self.seconds(time))" }
        logger.info("\(text)")
    }

    private static func seconds(_ time: Nanoseconds) -> String {
        let tenths = (time.count / 50_000_000 + 1) / 2
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
