internal import Scenario
internal import Yams

/// Checks of actions.
extension ScenarioReader {
    /// Reads the action of the device or writer that a step names.
    func readAction(_ fields: ScenarioFields, _ step: inout Scenario.Step) -> Bool {
        let acting = (deviceNames + writerNames).filter { fields[$0] != nil }
        guard acting.count == 1, let node = fields[acting[0]] else { return true }
        subject = acting[0]
        let mapping = deviceNames.contains(subject) ? ScenarioFormat.action : ScenarioFormat.writerAction
        guard let action = mapping.read(node, self) else { return false }
        step.action = (acting[0], action)
        return true
    }

    /// Reports keys without an effect, missing keys, and what the client does not have.
    func check(_ action: Scenario.Action, _ fields: ScenarioFields) -> Bool {
        let names = fields.object.exactlyOne
        guard let name = fields.only(of: names, expected: "expected one of \(names.joined(separator: ", "))"),
            let value = fields[name]
        else { return false }
        checkCompanions(of: name, fields)
        guard isAction(name, value, of: subject) else { return false }
        let hasContent = fields["title"] != nil || fields["text"] != nil
        switch action {
        case .edit, .editStale: if !hasContent { fields.report("'edit' needs 'title' or 'text'") }
        case .resolve:
            if hasContent { break }
            if let way = fields["with"] {
                if fields.isWhole { reader.report("'with: write' needs 'title' or 'text'", at: way) }
            } else {
                fields.report("'resolve' needs 'title' or 'text', or 'with'")
            }
        case .choose(_, let choice) where hasContent:
            reader.report(
                "'with: \(choice.rawValue)' has no 'title' and no 'text'; only 'with: write' does", at: fields["with"])
        case .signOut, .signIn, .disk: return isPossible(action, value, of: subject)
        case .upgrade(let version): return isVersion(version, value, of: subject)
        case .call(let name, _): return isCall(name, value, fields["with"], of: subject)
        default: break
        }
        return true
    }

    /// Reports keys that have no effect with an action.
    private func checkCompanions(of action: String, _ fields: ScenarioFields) {
        let companions: [String: [String]] = [
            "create": ["title", "text"], "edit": ["title", "text", "stale"], "delete": ["stale"],
            "resolve": ["title", "text", "with"], "call": ["with"],
        ]
        for key in ["title", "text", "stale", "with"] where fields[key] != nil {
            if companions[action]?.contains(key) ?? false { continue }
            reader.report(
                action == "create" && key == "stale"
                    ? "a creation has no base, so it cannot be stale" : "'\(action)' has no '\(key)'", at: fields[key])
        }
    }

    /// Reads the way to resolve a conflict, or the arguments of a call.
    func readWith(_ fields: ScenarioFields, _ action: inout Scenario.Action) -> Bool {
        guard let node = fields["with"] else { return true }
        switch action {
        case .resolve(let row, _, _):
            guard let way = oneOf(node, ScenarioFormat.ways) else { return false }
            if let choice = Scenario.Choice(rawValue: way) { action = .choose(row: row, choice) }
        case .call(let name, _): action = .call(name: name, arguments: arguments(node, isHeader: false))
        default: break
        }
        return true
    }

    /// Reports a request target that is none, and names of unknown notes.
    func check(_ request: Scenario.RawRequest, _ fields: ScenarioFields) -> Bool {
        guard fields.isWhole, let path = fields["path"] else { return false }
        // The request target becomes part of a line (RFC 9112, 3).
        guard request.path.hasPrefix("/"), request.path.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            reader.report(
                "expected a path that begins with '/' and has no spaces, such as '/api/notes/{n1}/'", at: path)
            return false
        }
        for row in request.rows { checkRow(row, at: path) }
        for row in request.revisionRows { checkRow(row, at: fields["headers"] ?? fields.node) }
        return true
    }

    private func checkRow(_ row: String, at node: Node) {
        if rows.contains(row) { return }
        reader.report("no note is called '\(row.prefix(40))'\(NearestName.hint(row, in: rows))", at: node)
    }

    /// Reads header fields, or the arguments of a call.
    func arguments(_ node: Node?, isHeader: Bool) -> [Scenario.Argument] {
        let kind = isHeader ? "a header field" : "an argument"
        return entries(node, expected: "a mapping from names to values").compactMap { key, value in
            guard let name = reader.text(key, expected: "the name of \(kind)"), let text = text(value) else {
                return nil
            }
            // A field name is a token, and a field value has no control characters (RFC 9110, 5.1 and 5.5).
            let isToken = name.utf8.allSatisfy { byte in
                (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
                    || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
            guard !name.isEmpty, isToken || !isHeader else {
                reader.report("'\(name.prefix(40))' is not the name of \(kind)", at: key)
                return nil
            }
            guard !isHeader || text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                reader.report("expected a value without control characters", at: value)
                return nil
            }
            return Scenario.Argument(name: name, value: text)
        }
    }
}
