internal import CommandSupport
internal import Determinism
internal import Foundation
internal import Wire

/// The table of `slowlane measure`.
enum MeasurementText {
    /// The headings of the columns.
    static let header = ["PROFILE", "ECHO OF", "EXPECTED", "MEASURED", "OFF BY", ""]

    /// Returns the row of a measurement.
    static func row(_ result: ProfileMeasurement) -> [String] {
        [
            result.profile, "\(result.size) B", Units.milliseconds(result.expected),
            Units.milliseconds(result.measured),
            String(format: "%+.1f ms", (result.measured - result.expected).inMilliseconds),
            result.isWithinTolerance ? "ok" : "OFF",
        ]
    }

    /// Returns a measurement as a JSON object, with times in milliseconds.
    static func json(_ result: ProfileMeasurement) -> String {
        JSONText.object([
            ("type", JSONText.string("measurement")), ("version", "1"), ("profile", JSONText.string(result.profile)),
            ("bytes", "\(result.size)"), ("expected_ms", JSONText.number(result.expected.inMilliseconds)),
            ("measured_ms", JSONText.number(result.measured.inMilliseconds)), ("pass", "\(result.isWithinTolerance)"),
        ])
    }

    /// Returns the line of a measurement while others are pending.
    static func progress(_ result: ProfileMeasurement) -> String {
        "  \(result.profile) \(result.size) B: \(Units.milliseconds(result.measured))"
    }
}
