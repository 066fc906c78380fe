/// Screens of apps after a restart.
extension CrashAtomicity {
    /// What a user has typed into forms, as a device has shown it last.
    private struct Forms {
        /// The inputs of each form.
        var inputs: [String: Set<String>] = [:]
        /// The forms that no process has shown since the last start.
        var awaited: Set<String> = []
    }

    /// Returns the first form that a device shows after a restart without the inputs that it had before, or another screen
    /// of an app that stores its screen.
    static func lostInput(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        guard let app = device.device.client.app else { return nil }
        let inputs = Set(app.vocabulary.calls.first { $0.name == "fill" }?.arguments ?? [])
        let own = Set(device.exchanges.map { run.exchanges[$0] }.filter { $0.method == "POST" }.map(\.id))
        var forms = Forms()
        var (screen, isFirst): (String?, Bool) = (nil, false)
        for (index, entry) in run.history.entries.enumerated() {
            switch entry.event {
            case .stopped(device.name):
                forms.awaited = Set(forms.inputs.keys)
                isFirst = true
            case .action(device.name, let action):
                switch action {
                case .kill, .start: continue
                case .call(let name, _) where name == "fill" || name == "submit": forms = Forms()
                default: screen = nil
                }
            case .responseReceived(let id, _), .failed(let id):
                // The end of a submission ends its form.
                if own.contains(id) { forms = Forms() }
            case .device(device.name, let state):
                let shown = state.screen
                guard let name = shown.name else { continue }
                if isFirst, app.vocabulary.habits.contains(.restoresRecord), let screen, screen != name,
                    !app.vocabulary.screens.contains(screen),
                    name != "no-wifi"
                {
                    return InvariantViolation(
                        "\(device.name) shows the screen '\(name)' after a restart, not '\(screen)'", at: index,
                        of: device.name)
                }
                (screen, isFirst) = (name, false)
                guard shown.controls?.contains("fill") == true else { continue }
                let typed = Set((shown.fields ?? []).filter { isInput($0, of: inputs) })
                if forms.awaited.remove(name) != nil, let lost = forms.inputs[name]?.subtracting(typed).sorted().first {
                    return InvariantViolation(
                        "\(device.name) has lost the input '\(lost)' after a restart", at: index, of: device.name)
                }
                forms.inputs[name] = typed
            default: continue
            }
        }
        return nil
    }

    /// Returns whether a field is an input that is stored: secrets are not.
    private static func isInput(_ field: String, of inputs: Set<String>) -> Bool {
        guard let end = field.firstIndex(of: "="), !field.hasSuffix("=concealed") else { return false }
        return inputs.contains(String(field[..<end]))
    }
}
