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
    for feature in Feature.actions + Feature.expectations {
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

    // MARK: Actions

    static var actions: [Feature] {
        [
            action("'pin'") { _, action in if case .pin = action { true } else { false } },
            action("'open'") { _, action in if case .open = action { true } else { false } },
            action("'upgrade'") { _, action in if case .upgrade = action { true } else { false } },
            action("'call'") { _, action in if case .call = action { true } else { false } },
        ]
    }

    private static func action(_ name: String, _ isUse: @escaping (Bool, Scenario.Action) -> Bool) -> Feature {
        Feature(name) { scenario in
            for step in scenario.steps {
                guard let (actor, action) = step.action else { continue }
                let device = scenario.devices.first { $0.name == actor }
                // The adapter of a program takes every action.
                if device?.runsProgram ?? false { continue }
                if isUse(device != nil, action) { return step.location }
            }
            return nil
        }
    }

    // MARK: Expectations and states

    static var expectations: [Feature] {
        StateCondition.screenKeys.map { key in
            state("'\(key.rawValue)'") { _, condition in condition.checks.contains { $0.key == key } }
        }
    }

    /// A feature of states, which expectations and the triggers of steps have.
    private static func state(_ name: String, _ isUse: @escaping (String, StateCondition) -> Bool) -> Feature {
        Feature(name) { scenario in
            for step in scenario.steps {
                if case .when(let device, let condition, _) = step.trigger, isUse(device, condition) {
                    return step.location
                }
            }
            for expectation in scenario.expectations {
                switch expectation.kind {
                case .always(let device, let condition), .sometimes(let device, let condition),
                    .eventually(let device, let condition, _), .finally(let device, let condition):
                    if isUse(device, condition) { return expectation.location }
                default: break
                }
            }
            return nil
        }
    }
}
