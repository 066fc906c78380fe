internal import Determinism
internal import Scenario
internal import Yams

/// Reads actions.
extension ScenarioReader {
    /// Reads an action of a device or writer.
    func action(_ node: Node, by actor: String) -> Scenario.Action? {
        let object = deviceNames.contains(actor) ? "action" : "writer-action"
        guard let fields = fields(node, object) else { return nil }
        let names = fields.object.exactlyOne
        guard let name = only(fields, of: names, expected: "expected one of \(names.joined(separator: ", "))"),
            let value = fields[name]
        else { return nil }
        checkCompanions(of: name, fields)
        guard isAction(name, value, of: actor) else { return nil }
        switch name {
        case "create", "edit", "delete": return change(name, value, fields)
        case "resolve": return resolution(value, fields)
        case "keep": return knownRow(value).map { .keep(row: $0) }
        case "pin": return knownRow(value).map { .pin(row: $0) }
        case "open":
            if value.scalar?.string == "list" { return .open(row: nil) }
            return knownRow(value).map { .open(row: $0) }
        case "sync": return oneOf(value, ["now"]).map { _ in .sync }
        case "kill": return oneOf(value, ["now"]).map { _ in .kill }
        case "start": return oneOf(value, ["now", "again"]).map { _ in .start }
        case "raw", "send": return request(value).map { .send($0) }
        case "upgrade":
            guard let version = fields.integer("upgrade"), isVersion(version, value, of: actor) else { return nil }
            return .upgrade(version: version)
        case "clock":
            guard let clock = self.fields(value, "clock") else { return nil }
            return clock["wall"].flatMap(signedTime).map { .clock(shift: $0) }
        default:
            let arguments = arguments(fields["with"], isHeader: false)
            guard let name = text(value), isCall(name, value, fields["with"], of: actor) else { return nil }
            return .call(name: name, arguments: arguments)
        }
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

    private func change(_ name: String, _ value: Node, _ fields: ScenarioFields) -> Scenario.Action? {
        let title = fields.text("title")
        let text = fields.text("text")
        let isStale = fields.boolean("stale") ?? false
        guard let row = name == "create" ? newRow(value) : knownRow(value) else { return nil }
        switch name {
        case "create": return .create(row: row, title: title, text: text)
        case "delete": return isStale ? .deleteStale(row: row) : .delete(row: row)
        default:
            if fields["title"] == nil && fields["text"] == nil {
                reader.report("'edit' needs 'title' or 'text'", at: fields.node)
            }
            return isStale
                ? .editStale(row: row, title: title, text: text) : .edit(row: row, title: title, text: text)
        }
    }

    private func resolution(_ value: Node, _ fields: ScenarioFields) -> Scenario.Action? {
        let title = fields.text("title")
        let text = fields.text("text")
        guard let row = knownRow(value) else { return nil }
        guard let way = fields["with"] else {
            if fields["title"] == nil && fields["text"] == nil {
                reader.report("'resolve' needs 'title' or 'text', or 'with'", at: fields.node)
            }
            return .resolve(row: row, title: title, text: text)
        }
        guard let name = oneOf(way, ["theirs", "mine", "write", "delete"]) else { return nil }
        guard let choice = Scenario.Choice(rawValue: name) else {
            if fields["title"] == nil && fields["text"] == nil {
                reader.report("'with: write' needs 'title' or 'text'", at: way)
            }
            return .resolve(row: row, title: title, text: text)
        }
        if fields["title"] != nil || fields["text"] != nil {
            reader.report("'with: \(name)' has no 'title' and no 'text'; only 'with: write' does", at: way)
        }
        return .choose(row: row, choice)
    }

    private func request(_ node: Node) -> Scenario.RawRequest? {
        guard let fields = fields(node, "request") else { return nil }
        let method = fields.choice("method")
        let headers = arguments(fields["headers"], isHeader: true)
        let body = fields.text("body") ?? ""
        guard let method, let pathNode = fields["path"], let path = fields.text("path") else { return nil }
        // The request target becomes part of a line (RFC 9112, 3).
        guard path.hasPrefix("/"), path.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            reader.report(
                "expected a path that begins with '/' and has no spaces, such as '/api/notes/{n1}/'", at: pathNode)
            return nil
        }
        let request = Scenario.RawRequest(method: method, path: path, headers: headers, body: body)
        for row in request.rows where !rows.contains(row) {
            reader.report("no note is called '\(row.prefix(40))'\(NearestName.hint(row, in: rows))", at: pathNode)
        }
        for row in request.revisionRows where !rows.contains(row) {
            reader.report(
                "no note is called '\(row.prefix(40))'\(NearestName.hint(row, in: rows))", at: fields["headers"] ?? node
            )
        }
        return request
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
