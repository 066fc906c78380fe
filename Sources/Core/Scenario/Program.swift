extension Scenario {
    /// A program of the user's that takes part in a run: the client of a device, or the server.
    public struct Program: Hashable, Sendable {
        /// The program and its arguments. A program without a slash is searched in `PATH`.
        public let arguments: [String]
        /// The working folder; `nil` for that of the runner.
        public let folder: String?

        /// The part of a reason that tells that a program has ended during the run.
        public static let endedByItself = "ended by itself"

        /// Creates a program.
        public init(_ arguments: [String], folder: String? = nil) {
            self.arguments = arguments
            self.folder = folder
        }
    }

    /// Why the scenario runs in real time only; `nil` if it runs in virtual time too.
    public var realTimeReason: String? {
        if let device = devices.first(where: \.runsProgram) { return "the client of \(device.name) is a program" }
        switch server {
        case .builtIn: return nil
        case .run: return "the server is a program"
        case .url(let url): return "the server is \(url)"
        }
    }

    /// Whether the server speaks TLS.
    public var speaksTLS: Bool {
        if case .url(let url) = server, ServerURL(url)?.isSecure == true { return true }
        return tls != nil
    }

    /// Returns the scenario with other clients: a program for each device in `programs`.
    public func replacingClients(_ programs: [String: Program]) -> Scenario {
        var scenario = self
        for (index, device) in devices.enumerated() {
            guard let program = programs[device.name] else { continue }
            var adapter = Device.Adapter.lines
            if case .run(_, let given) = device.client { adapter = given }
            scenario.devices[index].client = .run(program, adapter: adapter)
            // A program has no settings.
            scenario.devices[index].settings = []
        }
        return scenario
    }
}

extension Scenario.Device {
    /// Whether the client is a program.
    public var runsProgram: Bool { if case .run = client { true } else { false } }

    /// Whether the client is a program that takes no acts and reports no views.
    public var lacksAdapter: Bool { if case .run(_, .none) = client { true } else { false } }
}

/// An expectation that a run cannot evaluate, because somebody else's client or server does not show what it needs.
public struct ImpossibleCheck: Hashable, Sendable {
    /// The expectation in one line.
    public let description: String
    /// The location in the scenario's file.
    public let location: SourceLocation
    /// What is missing.
    public let reason: String

    /// Creates a check that could not be evaluated.
    public init(description: String, location: SourceLocation, reason: String) {
        self.description = description
        self.location = location
        self.reason = reason
    }
}

extension Scenario {
    /// Returns why a fault never applies because of the programs that are the clients; `nil` if it may apply.
    public func impossibility(of fault: Fault) -> String? {
        let targets = devices.filter { fault.device == nil || fault.device == $0.name }
        guard fault.point == .stored, let first = targets.first, targets.allSatisfy(\.runsProgram) else { return nil }
        return "the program of \(first.name) does not report what it stores, so no fault is possible at 'stored'"
    }

    /// Returns why an expectation cannot be evaluated; `nil` if it can.
    ///
    /// - Parameter published: The devices whose states are known, with the screen keys that each has published; `nil`
    ///   for all that have an adapter, and all keys.
    public func impossibility(
        of expectation: Expectation, published: [String: Set<StateCondition.Check.Key>]? = nil
    ) -> String? {
        switch expectation.kind {
        case .always(let device, let condition), .sometimes(let device, let condition),
            .eventually(let device, let condition, _), .finally(let device, let condition):
            if device == Self.anyDevice {
                let reasons = devices.map { missingState($0.name, condition, published) }
                return reasons.contains(nil) ? nil : reasons.first ?? nil
            }
            return missingState(device, condition, published)
        case .serverRow, .serverCount: return missingServer
        case .agree(let names):
            for name in names {
                if let reason = name == "server" ? missingServer : missingView(name, published) { return reason }
            }
            return nil
        case .traffic, .sometimesTraffic, .sometimesFault, .threshold: return nil
        }
    }

    private var missingServer: String? {
        server == .builtIn ? nil : "the notes of a server other than the built-in one are not read"
    }

    private func missingState(
        _ name: String, _ condition: StateCondition, _ published: [String: Set<StateCondition.Check.Key>]?
    ) -> String? {
        if let reason = missingView(name, published) { return reason }
        guard let keys = published?[name], devices.contains(where: { $0.name == name && $0.runsProgram }) else {
            return nil
        }
        let missing = condition.checks.first { StateCondition.screenKeys.contains($0.key) && !keys.contains($0.key) }
        return missing.map { "the program of \(name) has published no '\($0.key.rawValue)'" }
    }

    private func missingView(_ name: String, _ published: [String: Set<StateCondition.Check.Key>]?) -> String? {
        guard let device = devices.first(where: { $0.name == name }), device.runsProgram else { return nil }
        if device.lacksAdapter { return "the program of \(name) has no adapter, so its view is not known" }
        if let published, published[name] == nil { return "the program of \(name) has printed no view" }
        return nil
    }

    /// Returns the expectations that a run has not evaluated.
    func impossibleChecks(_ history: History) -> [Int: ImpossibleCheck] {
        guard realTimeReason != nil else { return [:] }
        var published: [String: Set<StateCondition.Check.Key>] = [:]
        for entry in history.entries {
            guard case .device(let name, let state) = entry.event else { continue }
            published[name, default: []].formUnion(state.publishedKeys)
        }
        var found: [Int: ImpossibleCheck] = [:]
        for (index, expectation) in expectations.enumerated() {
            guard let reason = impossibility(of: expectation, published: published) else { continue }
            found[index] = ImpossibleCheck(
                description: expectation.description, location: expectation.location, reason: reason)
        }
        return found
    }
}
