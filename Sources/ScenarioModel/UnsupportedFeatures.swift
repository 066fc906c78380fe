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
    for feature in Feature.top + Feature.devices + Feature.faults + Feature.actions + Feature.expectations {
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

    // MARK: Top level

    static var top: [Feature] {
        [
            key("'seed: commit'", "seed") { $0.seedOrigin == .commit },
            key("'fill'", "server") { $0.fill != nil },
            Feature("'workload' with 'when'") { scenario in
                scenario.workload.first { if case .when = $0.trigger { true } else { false } }?.location
            },
        ]
    }

    private static func key(_ name: String, _ key: String, _ isUsed: @escaping (Scenario) -> Bool) -> Feature {
        Feature(name) { isUsed($0) ? $0.locations[key] ?? SourceLocation(file: $0.name) : nil }
    }

    // MARK: Devices and networks

    static var devices: [Feature] {
        [
            device("'client: legacy'") { $0.client == .legacy },
            network("'signalled: sometimes'") { $0.signalling == .sometimes },
            network("'interface'") { $0.interface != nil },
        ]
    }

    private static func device(_ name: String, _ isUse: @escaping (Scenario.Device) -> Bool) -> Feature {
        Feature(name) { $0.devices.first(where: isUse)?.location }
    }

    private static func network(_ name: String, _ isUse: @escaping (Scenario.NetworkEntry) -> Bool) -> Feature {
        Feature(name) { scenario in
            for device in scenario.devices {
                if let entry = device.network.first(where: isUse) { return entry.location }
            }
            return nil
        }
    }

    // MARK: Faults

    private static let points: [Scenario.Fault.Point] = [
        .queued, .partlySent, .stored, .any,
    ]
    private static let faultActions = ["kill"]

    static var faults: [Feature] {
        points.map { point in fault("the fault point '\(point.rawValue)'") { $0.point == point } }
            + faultActions.map { name in fault("the fault action '\(name)'") { $0.action.name == name } } + [
                fault("'reply' after the head of the response") { fault in
                    fault.action.name == "reply"
                        && [.answerStarted, .partlyAnswered, .answered].contains(fault.point)
                },
                fault("'trickle' after the response") { $0.action.name == "trickle" && $0.point == .answered },
            ]
    }

    private static func fault(_ name: String, _ isUse: @escaping (Scenario.Fault) -> Bool) -> Feature {
        Feature(name) { $0.faults.first(where: isUse)?.location }
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
