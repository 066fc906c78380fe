internal import LinkModel
internal import Scenario
internal import Yams

/// Checks of faults.
extension ScenarioReader {
    /// Reports keys of a fault that contradict each other, and an effect that its point does not have.
    func check(_ fault: Scenario.Fault, _ fields: ScenarioFields) -> Bool {
        if let node = fields["probability"] {
            if fields["nth"] != nil { reader.report("a fault has either 'nth' or 'probability'", at: node) }
            if fault.probability == .zero { reader.report("a fault with a probability of 0 % never applies", at: node) }
        }
        if fields.isWhole, let problem = fault.problem {
            reader.report(problem, at: fields[fault.side != nil ? "side" : fault.bytes != nil ? "bytes" : "point"])
        }
        return true
    }

    /// Reads an effect without a value.
    func faultWord(_ node: Node) -> Scenario.Fault.Action? {
        let words = ScenarioFormat.faultWords
        let others = ScenarioFormat.then.object.exactlyOne
        let expected =
            ScenarioFormat.alternatives(words.map(\.word)) + ", or a mapping with "
            + ScenarioFormat.alternatives(others)
        guard let text = reader.text(node, expected: expected) else { return nil }
        if let found = words.first(where: { $0.word == text }) { return found.value }
        let hint = NearestName.hint(text, in: words.map(\.word) + others, synonyms: ScenarioFormat.synonyms)
        reader.report("'\(text.prefix(40))': expected \(expected)\(hint)", at: node)
        return nil
    }
}
