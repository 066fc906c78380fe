internal import Determinism

extension ExpectationEvaluator {
    /// A change that a device has accepted from its user.
    struct Change {
        let device: String
        let row: String
        /// The action of the user.
        let action: Scenario.Action
        /// Whether the action is that of a step, and not a reaction of the workload.
        let isOfStep: Bool
        /// The time and the index of the entry at which the action started.
        let start: Nanoseconds
        let startIndex: Int
        /// The index of the entry at which the change was accepted.
        let acceptedIndex: Int

        var kind: Scenario.Action.Kind { action.kind }
        /// The action if it is that of a step. What a reaction writes depends on the state that it has met.
        var stepAction: Scenario.Action? { isOfStep ? action : nil }
    }

    /// Returns the changes that devices have accepted, in order. The actions of a device follow one another, so each
    /// belongs to the last one that its device has started.
    static func changes(_ history: History) -> [Change] {
        var started: [String: (index: Int, action: Scenario.Action, isOfStep: Bool)] = [:]
        var isStep = false
        var found: [Change] = []
        for (index, entry) in history.entries.enumerated() {
            switch entry.event {
            case .action(let actor, let action): started[actor] = (index, action, isStep)
            case .accepted(let device, let row):
                guard let (startIndex, action, isOfStep) = started[device] else { break }
                found.append(
                    Change(
                        device: device, row: row, action: action, isOfStep: isOfStep,
                        start: history.entries[startIndex].time, startIndex: startIndex, acceptedIndex: index))
            default: break
            }
            // The event of a step is followed by that of its action.
            if case .step = entry.event { isStep = true } else { isStep = false }
        }
        return found
    }
}
