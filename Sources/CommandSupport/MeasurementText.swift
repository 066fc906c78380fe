internal import Determinism
internal import Foundation
public import LiveMeasurement

/// The table of `slowlane measure`.
public enum MeasurementText {
    /// The headings of the columns.
    public static let header = ["PROFILE", "ECHO OF", "EXPECTED", "MEASURED", "OFF BY", ""]

    /// Returns the row of a measurement.
    public static func row(_ result: ProfileMeasurement) -> [String] {
        [
            result.profile, "\(result.size) B", Units.milliseconds(result.expected),
            Units.milliseconds(result.measured),
            String(format: "%+.1f ms", (result.measured - result.expected).inMilliseconds),
            result.isWithinTolerance ? "ok" : "OFF",
        ]
    }

    /// Returns the line of a measurement while others are pending.
    public static func progress(_ result: ProfileMeasurement) -> String {
        "  \(result.profile) \(result.size) B: \(Units.milliseconds(result.measured))"
    }
}
