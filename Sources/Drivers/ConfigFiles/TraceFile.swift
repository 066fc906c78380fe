internal import Foundation
public import LinkModel
internal import Scenario

/// Trace files in Mahimahi's format: one whole number of milliseconds per line, each an opportunity to send 1500 bytes.
public enum TraceFile {
    /// The size limit.
    static let bytesMax = 32 << 20

    /// Reads a trace file; errors have file and line.
    public static func read(_ path: String) throws(FileError) -> DeliveryTrace {
        let data: Data
        do {
            data = try TextFile.readBytes(path, bytesMax: bytesMax)
        } catch {
            throw fileError(path, nil, "cannot read the trace: \(error.reason)")
        }
        if data.count > bytesMax { throw fileError(path, nil, "the trace is larger than \(bytesMax >> 20) MiB") }
        return try parse(data, file: path)
    }

    /// Returns the text of a trace file.
    public static func text(_ trace: DeliveryTrace) -> String {
        var text = ""
        for time in trace.milliseconds { text += "\(time)\n" }
        return text
    }

    /// Parses the bytes of a trace.
    static func parse(_ data: Data, file: String) throws(FileError) -> DeliveryTrace {
        let expected = "a whole number of milliseconds, 0 to \(DeliveryTrace.millisecondsMax), alone on its line"
        var times: [UInt32] = []
        var line = 1
        var value: UInt64?
        var hasEnded = false
        var last: UInt32 = 0
        func finishLine() throws(FileError) {
            defer {
                line += 1
                value = nil
                hasEnded = false
            }
            guard let number = value else { return }
            guard number <= DeliveryTrace.millisecondsMax else { throw fileError(file, line, "expected \(expected)") }
            let stamp = UInt32(number)
            guard stamp >= last else {
                throw fileError(file, line, "\(stamp) is earlier than \(last) on the line before")
            }
            guard times.count < DeliveryTrace.countMax else {
                throw fileError(file, line, "more than \(DeliveryTrace.countMax) opportunities")
            }
            last = stamp
            times.append(stamp)
        }
        for byte in data {
            switch byte {
            case UInt8(ascii: "\n"): try finishLine()
            case UInt8(ascii: "0")...UInt8(ascii: "9") where !hasEnded && (value ?? 0) <= UInt64(UInt32.max):
                value = (value ?? 0) * 10 + UInt64(byte - UInt8(ascii: "0"))
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): hasEnded = value != nil
            default: throw fileError(file, line, "expected \(expected)")
            }
        }
        try finishLine()
        do {
            return try DeliveryTrace(milliseconds: times)
        } catch {
            throw fileError(file, nil, "no opportunity after 0 ms; expected at least one")
        }
    }

    static func fileError(_ file: String, _ line: Int?, _ message: String) -> FileError {
        FileError(problems: [Problem(SourceLocation(file: file, line: line, column: line == nil ? nil : 1), message)])
    }
}
