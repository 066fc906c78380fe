internal import Determinism
internal import Scenario

/// Checks of windows: one that ends before it begins contains nothing, so whatever must not happen in it never does.
extension ScenarioReader {
    /// Reports windows of expectations that certainly end before they begin. The times of steps with `when`, and of those
    /// that follow them, are not known.
    func checkWindows(_ scenario: Scenario, _ order: StepOrder) {
        for expectation in scenario.expectations {
            let window: (name: String, from: TimeReference?, to: TimeReference?)
            switch expectation.kind {
            case .traffic(let traffic), .sometimesTraffic(let traffic):
                window = ("'between'", traffic.between?.from, traffic.between?.to)
            case .always(_, let condition), .sometimes(_, let condition):
                window = ("'since' to 'until'", condition.since, condition.until)
            default: continue
            }
            guard let from = window.from, let to = window.to,
                let reason = Self.contradiction(from, to, scenario.steps, order)
            else { continue }
            reader.report("\(window.name) \(reason); exchange the two", at: expectation.location)
        }
    }

    /// Returns the reason why a window ends before it begins; `nil` if it may have a length.
    private static func contradiction(
        _ from: TimeReference, _ to: TimeReference, _ steps: [Scenario.Step], _ order: StepOrder
    ) -> String? {
        func setter(_ reference: TimeReference) -> Int? {
            if case .mark(let mark) = reference { steps.firstIndex { $0.mark == mark } } else { nil }
        }
        let (beginStep, endStep) = (setter(from), setter(to))
        if let beginStep, let endStep, order.ancestors(of: beginStep).contains(endStep) {
            return "ends at '\(to)', but begins at '\(from)', which is set after it"
        }
        let begin: (least: Nanoseconds, text: String)
        switch from {
        case .time(let time): begin = (time, TimeFormat.short(time))
        case .mark(let mark):
            guard let beginStep, let least = order.earliest[beginStep] else { return nil }
            begin = (least, "'\(mark)' (\(TimeFormat.short(least)) or later)")
        case .end: return nil
        }
        let end: (time: Nanoseconds, text: String)
        switch to {
        case .time(let time): end = (time, TimeFormat.short(time))
        case .mark(let mark):
            // The mark stands for the start of its action. Only this time is certain.
            guard let endStep, case .at(let time) = steps[endStep].trigger else { return nil }
            end = (time, "'\(mark)' (\(TimeFormat.short(time)))")
        case .end: return nil
        }
        return end.time < begin.least ? "ends at \(end.text), but begins at \(begin.text)" : nil
    }
}
