internal import Determinism
internal import LinkModel
internal import Scenario
internal import Yams

/// Reads faults.
extension ScenarioReader {
    func fault(_ node: Node) -> Scenario.Fault? {
        guard let fields = fields(node, "fault") else { return nil }
        let request = fields["request"].flatMap(pattern)
        let point = fields.choice("point").flatMap(Scenario.Fault.Point.init(rawValue:))
        let action = fields["then"].flatMap(faultAction)
        let nth = fields.integer("nth")
        let probability = fields.percentage("probability")
        if let node = fields["probability"] {
            if nth != nil { reader.report("a fault has either 'nth' or 'probability'", at: node) }
            if probability == .zero { reader.report("a fault with a probability of 0 % never applies", at: node) }
        }
        let times = fields["times"].map(times) ?? 1...1
        let device = fields["to"].flatMap(knownDevice)
        guard let request, let point, let action else { return nil }
        if !action.isPossible(at: point) {
            let reason =
                point == .stored
                ? "after 'stored' the exchange is over; only 'reset', 'close' and 'kill' have an effect"
                : "'\(action.name)' has no effect at '\(point.rawValue)': "
                    + (action.name == "respond"
                        ? "the client has the head of the server's response" : "no byte is left")
            reader.report(reason, at: fields["point"])
        }
        return Scenario.Fault(
            request: request, nth: nth ?? 1, probability: probability, times: times, device: device, point: point,
            action: action,
            location: location(node))
    }

    private func times(_ node: Node) -> ClosedRange<Int> {
        guard node.mapping != nil else {
            let count = integer(node, 1...ScenarioFormat.numberMax) ?? 1
            return count...count
        }
        guard let fields = fields(node, "times") else { return 1...1 }
        let least = fields.integer("min") ?? 1
        let most = fields.integer("max") ?? max(1, least)
        if fields["min"] == nil && fields["max"] == nil {
            reader.report("'times' needs 'min' or 'max'", at: node)
        }
        guard least <= most else {
            reader.report("'min' is greater than 'max'", at: node)
            return 1...1
        }
        return least...most
    }

    private func faultAction(_ node: Node) -> Scenario.Fault.Action? {
        let words = ["reset", "close", "stall", "kill"]
        let object = ScenarioFormat.object("then")
        guard node.mapping != nil else {
            let expected =
                ScenarioFormat.alternatives(words) + ", or a mapping with "
                + ScenarioFormat.alternatives(object.exactlyOne)
            guard let word = reader.text(node, expected: expected) else { return nil }
            switch word {
            case "reset": return .reset
            case "close": return .close
            case "stall": return .stall
            case "kill": return .kill(device: nil)
            default:
                reader.report(
                    "'\(word.prefix(40))': expected \(expected)"
                        + NearestName.hint(
                            word, in: words + object.exactlyOne, synonyms: ScenarioFormat.synonyms), at: node)
                return nil
            }
        }
        guard let fields = fields(node, "then"),
            let name = only(
                fields, of: object.exactlyOne,
                expected: "'then' needs one of \(object.exactlyOne.joined(separator: ", "))")
        else { return nil }
        switch name {
        case "delay": return fields.time("delay").map { .delay($0) }
        case "kill": return fields["kill"].flatMap(knownDevice).map { .kill(device: $0) }
        case "throttle": return fields.integer("throttle").map { .throttle(bytesPerSecond: $0) }
        default:
            guard let node = fields["respond"], let reply = self.fields(node, "respond"),
                let status = reply.integer("status")
            else { return nil }
            return .respond(
                Scenario.Fault.Response(
                    status: status, headers: arguments(reply["headers"], isHeader: true),
                    body: reply.text("body") ?? ""))
        }
    }
}
