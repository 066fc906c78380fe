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

    /// Returns the scenario with other clients: a program for each device in `programs`.
    public func replacingClients(_ programs: [String: Program]) -> Scenario {
        var scenario = self
        for (index, device) in devices.enumerated() {
            guard let program = programs[device.name] else { continue }
            var adapter = Device.Adapter.lines
            if case .run(_, let given) = device.client { adapter = given }
            scenario.devices[index] = Device(
                name: device.name, user: device.user, startsSynced: device.startsSynced,
                client: .run(program, adapter: adapter), network: device.network, location: device.location)
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
}

extension Scenario {
    /// Returns why an expectation cannot be evaluated; `nil` if it can.
    ///
    /// - Parameter reporting: The devices whose states are known; `nil` for all that have an adapter.
    public func impossibility(of expectation: Expectation, reporting: Set<String>? = nil) -> String? {
        switch expectation.kind {
        case .always(let device, _), .sometimes(let device, _), .eventually(let device, _, _), .finally(let device, _):
            if device == Self.anyDevice {
                let reasons = devices.map { missingView($0.name, reporting) }
                return reasons.contains(nil) ? nil : reasons.first ?? nil
            }
            return missingView(device, reporting)
        case .serverRow, .serverCount: return missingServer
        case .agree(let names):
            for name in names {
                if let reason = name == "server" ? missingServer : missingView(name, reporting) { return reason }
            }
            return nil
        case .traffic, .sometimesTraffic, .sometimesFault, .threshold: return nil
        }
    }

    private var missingServer: String? {
        server == .builtIn ? nil : "the notes of a server other than the built-in one are not read"
    }

    private func missingView(_ name: String, _ reporting: Set<String>?) -> String? {
        guard let device = devices.first(where: { $0.name == name }), device.runsProgram else { return nil }
        if device.lacksAdapter { return "the program of \(name) has no adapter, so its view is not known" }
        if let reporting, !reporting.contains(name) { return "the program of \(name) has printed no view" }
        return nil
    }

    /// Returns the expectations that a run has not evaluated.
    func impossibleChecks(_ history: History) -> [Int: ImpossibleCheck] {
        guard realTimeReason != nil else { return [:] }
        var reporting: Set<String> = []
        for entry in history.entries { if case .device(let name, _) = entry.event { reporting.insert(name) } }
        var found: [Int: ImpossibleCheck] = [:]
        for (index, expectation) in expectations.enumerated() {
            guard let reason = impossibility(of: expectation, reporting: reporting) else { continue }
            found[index] = ImpossibleCheck(
                description: expectation.description, location: expectation.location, reason: reason)
        }
        return found
    }
}
