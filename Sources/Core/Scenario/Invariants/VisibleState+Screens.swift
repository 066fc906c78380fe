internal import Determinism

/// Screens of apps.
extension VisibleState {
    /// The longest time for which a message that vanishes by itself is shown after the last reason to show it.
    private static let toastMax = Nanoseconds.seconds(5)

    /// Returns the first screen of an app that contradicts its rows, its belief about connectivity, or the time.
    static func screen(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        guard let app = device.device.client.app, run.world?.isSimulated == true else { return nil }
        let own = Set(device.exchanges.map { run.exchanges[$0].id })
        var isOnline = true
        var toast: (text: String, since: Nanoseconds)?
        for (index, entry) in run.history.entries[..<min(run.endIndex, run.history.entries.count)].enumerated() {
            // While the disk is full, the view stays as it is.
            if let (text, since) = toast, entry.time - since > toastMax,
                !device.isDiskLate(from: run.lastIndex(until: since), to: index)
            {
                return InvariantViolation(
                    "\(device.name) still shows the message '\(text)' at \(RunFacts.text(entry.time))",
                    at: index, of: device.name)
            }
            switch entry.event {
            case .belief(device.name, let belief): isOnline = belief == .online
            case .stopped(device.name): toast = nil
            // A message may be shown again.
            case .action(device.name, _), .network(device.name, _, _), .interface(device.name, _, _),
                .connectionEnded(_, device: device.name):
                toast?.since = entry.time
            case .responseReceived(let id, _), .failed(let id):
                if own.contains(id) { toast?.since = entry.time }
            case .device(device.name, let state):
                let screen = state.screen
                let text = screen.toast.flatMap { $0 == "none" ? nil : $0 }
                if text != toast?.text { toast = text.map { ($0, entry.time) } }
                if let reason = contradiction(state, screen, isOnline: isOnline, of: app) {
                    return InvariantViolation(
                        "\(device.name) shows \(reason) at \(RunFacts.text(entry.time))", at: index, of: device.name)
                }
            default: continue
            }
        }
        return nil
    }

    private static func contradiction(
        _ state: History.DeviceState, _ screen: History.ScreenState, isOnline: Bool, of app: Scenario.App
    ) -> String? {
        guard app.vocabulary.habits.contains(.marksChanges) else { return nil }
        let hasErrors = state.rows.contains { $0.error ?? "none" != "none" }
        for row in state.rows {
            let hasError = row.error ?? "none" != "none"
            if isOnline, !hasError, row.opacity == "0.5" || row.isStruck == true {
                return "\(row.name) with the look of an offline change, although it is online"
            }
            if hasError, row.hasMarker == false { return "an error of \(row.name) without its mark" }
        }
        if let hasMarker = screen.hasMarker, hasMarker != hasErrors {
            return hasErrors ? "an error without a mark at the root" : "a mark at the root without an error"
        }
        return nil
    }

    /// Returns what an app still shows at the end as if it were under way.
    static func unfinished(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        let hasQuiesced = run.history.entries.contains {
            if case .phase(.verify) = $0.event { true } else { false }
        }
        guard device.device.client.app != nil, device.device.isRestored, hasQuiesced, !run.wasAborted,
            let screen = device.state?.screen
        else { return nil }
        let loading = screen.fields?.first { $0.hasSuffix("=loading") }
        guard screen.dialog == "sending" || screen.name == "loading" || loading != nil else { return nil }
        return InvariantViolation(
            "\(device.name) shows \(loading ?? "a screen that waits") at the end", at: run.endIndex, of: device.name)
    }
}
