internal import Determinism

extension ExpectationEvaluator {
    /// A change that a device has accepted from its user.
    struct Change {
        let device: String
        let row: String
        /// The kind of action: the first word of its description, such as `edits`.
        let kind: String
        /// The action with its values, if it is that of a step.
        let action: Scenario.Action?
        /// The time and the index of the entry at which the action started.
        let start: Nanoseconds
        let startIndex: Int
        /// The index of the entry at which the change was accepted.
        let acceptedIndex: Int
    }

    /// Returns the changes that devices have accepted, in order. The actions of a device follow one another, so each
    /// belongs to the last one that its device has started.
    static func changes(_ history: History, _ scenario: Scenario) -> [Change] {
        var started: [String: (index: Int, text: String, action: Scenario.Action?)] = [:]
        var step: Scenario.Action?
        var found: [Change] = []
        for (index, entry) in history.entries.enumerated() {
            var next: Scenario.Action?
            switch entry.event {
            case .step(let number):
                if scenario.steps.indices.contains(number) { next = scenario.steps[number].action?.action }
            case .action(let actor, let action):
                started[actor] = (index, action.description, step?.description == action.description ? step : nil)
            case .notice(let actor, let notice): started[actor] = (index, notice.description, nil)
            case .accepted(let device, let row):
                guard let (startIndex, text, action) = started[device] else { break }
                found.append(
                    Change(
                        device: device, row: row, kind: String(text.prefix { $0 != " " }), action: action,
                        start: history.entries[startIndex].time, startIndex: startIndex, acceptedIndex: index))
            default: break
            }
            step = next
        }
        return found
    }
}
