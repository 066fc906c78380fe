/// A feature of the scenario format that a scenario uses and that the worlds do not execute.
public struct UnsupportedFeature: Hashable, Sendable, CustomStringConvertible {
    /// The feature, with the keys of scenario files.
    public let feature: String
    /// The location of its first use.
    public let location: SourceLocation

    public var description: String { "\(location): \(feature) is not supported yet" }
}

/// Returns the features that a scenario uses and that the worlds do not execute, each once, at its first use.
///
/// A world that learns to execute a feature removes the feature from the lists of this file.
public func unsupportedFeatures(of scenario: Scenario) -> [UnsupportedFeature] {
    var found: [UnsupportedFeature] = []
    for feature in Feature.devices {
        guard let location = feature.firstUse(scenario) else { continue }
        found.append(UnsupportedFeature(feature: feature.name, location: location))
    }
    return found
}

/// A feature that the worlds do not execute.
private struct Feature {
    let name: String
    /// Returns the location of the first use; `nil` if the scenario does not use the feature.
    let firstUse: (Scenario) -> SourceLocation?

    private init(_ name: String, _ firstUse: @escaping (Scenario) -> SourceLocation?) {
        self.name = name
        self.firstUse = firstUse
    }

    // MARK: Devices

    static var devices: [Feature] {
        [
            device("'client: legacy'") { $0.client == .legacy }
        ]
    }

    private static func device(_ name: String, _ isUse: @escaping (Scenario.Device) -> Bool) -> Feature {
        Feature(name) { $0.devices.first(where: isUse)?.location }
    }
}
