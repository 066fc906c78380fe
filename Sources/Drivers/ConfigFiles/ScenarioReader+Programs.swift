internal import Scenario
internal import Yams

/// Programs in place of Slowlane's client and server.
extension ScenarioReader {
    /// Returns a program. Relative paths begin at the folder of the file.
    func program(_ arguments: [String]) -> Scenario.Program {
        Scenario.Program(arguments, folder: folder)
    }

    /// The folder of the file: `.../` of `.../x.yaml`; `nil` for that of the runner.
    var folder: String? { reader.file.lastIndex(of: "/").map { String(reader.file[...$0]) } }

    /// Reads what tells that a server is ready: an absolute path, or a URL.
    func readiness(_ node: Node) -> String? {
        guard let text = text(node) else { return nil }
        let isPath = text.hasPrefix("/") && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        if isPath || ServerURL(text)?.isSecure == false { return text }
        reader.report(
            "'\(text.prefix(40))': expected a path such as '/health', or a URL such as 'http://localhost:8000/health'",
            at: node)
        return nil
    }

    /// Reports steps that a program cannot perform, and warns of keys without an effect.
    func checkPrograms(of scenario: Scenario) {
        for step in scenario.steps {
            if let (actor, action) = step.action, action != .kill, action != .start,
                scenario.devices.contains(where: { $0.name == actor && $0.lacksAdapter })
            {
                reader.report("the program of \(actor) has no adapter, so it cannot be told to act", at: step.location)
            }
            if case .when(let name, _, _) = step.trigger,
                scenario.devices.contains(where: { $0.name == name && $0.lacksAdapter })
            {
                reader.report("the program of \(name) has no adapter, so its state is not known", at: step.location)
            }
        }
        for step in scenario.steps where step.action?.action.kind == .server && scenario.server != .builtIn {
            reader.report("only the built-in server can be restored from a backup", at: step.location)
        }
        if scenario.speaksTLS {
            for device in scenario.devices where !device.runsProgram {
                reader.report(
                    "the client of \(device.name) speaks no TLS; the clients of a server with TLS are programs",
                    at: device.location)
            }
            if !scenario.writers.isEmpty, let location = scenario.locations["writers"] {
                reader.report("a server with TLS has no 'writers', which speak HTTP", at: location)
            }
        }
        for fault in scenario.faults {
            if let reason = scenario.impossibility(of: fault) { reader.report(reason, at: fault.location) }
        }
        if scenario.server != .builtIn, !scenario.notes.isEmpty || scenario.fill != nil,
            let location = scenario.locations["server"]
        {
            reader.warn("'notes' and 'fill' do not apply to a server other than the built-in one", at: location)
        }
        for expectation in scenario.expectations {
            guard let reason = scenario.impossibility(of: expectation) else { continue }
            reader.warn("the expectation cannot be evaluated: \(reason)", at: expectation.location)
        }
    }
}
