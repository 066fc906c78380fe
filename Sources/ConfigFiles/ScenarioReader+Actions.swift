internal import Determinism
internal import ScenarioModel
internal import Yams

/// Reads actions.
extension ScenarioReader {
    private static let deviceActions = ["create", "edit", "delete", "resolve", "sync", "kill", "start"]
    private static let writerActions = ["create", "edit", "delete", "raw"]
    private static let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

    /// Reads an action of a device or writer.
    func action(_ node: Node, by actor: String) -> Scenario.Action? {
        let isDevice = deviceNames.contains(actor)
        let names = isDevice ? Self.deviceActions : Self.writerActions
        let others = ["title", "text"] + (isDevice ? ["with"] : ["stale"])
        guard let keys = reader.mapping(node, keys: names + others, in: "an action") else { return nil }
        let named = names.filter { keys[$0] != nil }
        guard named.count == 1, let name = named.first, let value = keys[name] else {
            // A misspelt action has been reported already.
            if named.isEmpty && keys.count < node.mapping?.count ?? 0 { return nil }
            reader.report("expected one of \(names.joined(separator: ", "))", at: node)
            return nil
        }
        let title = keys["title"].flatMap { reader.text($0, expected: "a title") }
        let text = keys["text"].flatMap { reader.text($0, expected: "a text") }
        switch name {
        case "sync": return .sync
        case "kill": return .kill
        case "start": return .start
        case "raw": return rawRequest(value).map { .send($0) }
        default: break
        }
        guard let row = name == "create" ? reader.text(value, expected: "a note") : knownRow(value) else { return nil }
        if name == "resolve", let way = keys["with"] { return resolution(of: row, way, title, text) }
        if ["edit", "resolve"].contains(name) && title == nil && text == nil {
            reader.report("'\(name)' needs 'title' or 'text'\(name == "resolve" ? ", or 'with'" : "")", at: node)
        }
        let isStale = keys["stale"].flatMap { oneOf($0, ["true", "false"]) } == "true"
        if isStale { checkStale(name, row, keys["stale"]) }
        switch name {
        case "create": return .create(row: row, title: title, text: text)
        case "edit" where isStale: return .editStale(row: row, title: title, text: text)
        case "edit": return .edit(row: row, title: title, text: text)
        case "resolve": return .resolve(row: row, title: title, text: text)
        default: return isStale ? .deleteStale(row: row) : .delete(row: row)
        }
    }

    private func resolution(of row: String, _ way: Node, _ title: String?, _ text: String?) -> Scenario.Action? {
        guard let name = oneOf(way, ["theirs", "mine", "write", "delete"]) else { return nil }
        guard let choice = Scenario.Choice(rawValue: name) else {
            if title == nil && text == nil { reader.report("'with: write' needs 'title' or 'text'", at: way) }
            return .resolve(row: row, title: title, text: text)
        }
        if title != nil || text != nil {
            reader.report("'with: \(name)' has no 'title' and no 'text'; only 'with: write' does", at: way)
        }
        return .choose(row: row, choice)
    }

    private func checkStale(_ action: String, _ row: String, _ node: Node?) {
        if action == "create" { reader.report("a creation has no base, so it cannot be stale", at: node) }
    }

    private func rawRequest(_ node: Node) -> Scenario.RawRequest? {
        guard let keys = reader.mapping(node, keys: ["method", "path", "headers", "body"], in: "'raw'") else {
            return nil
        }
        for key in ["method", "path"] where keys[key] == nil { reader.report("'raw' needs '\(key)'", at: node) }
        guard let method = keys["method"].flatMap({ oneOf($0, Self.methods) }),
            let pathNode = keys["path"], let path = reader.text(pathNode, expected: "a path such as '/api/notes/{n1}/'")
        else { return nil }
        // The request target becomes part of a line (RFC 9112, 3).
        guard path.hasPrefix("/"), path.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            reader.report(
                "expected a path that begins with '/' and has no spaces, such as '/api/notes/{n1}/'", at: pathNode)
            return nil
        }
        let request = Scenario.RawRequest(
            method: method, path: path, headers: headers(keys["headers"]),
            body: keys["body"].flatMap { reader.text($0, expected: "a body") } ?? "")
        for row in request.rows where !rows.contains(row) {
            reader.report("no note is called '\(row.prefix(40))'\(NearestName.hint(row, in: rows))", at: pathNode)
        }
        return request
    }

    /// Reads header fields.
    func headers(_ node: Node?) -> [Scenario.Argument] {
        guard let node else { return [] }
        guard let mapping = node.mapping else {
            reader.report("expected a mapping from names of header fields to values", at: node)
            return []
        }
        return mapping.compactMap { key, value in
            guard let name = reader.text(key, expected: "the name of a header field"),
                let text = reader.text(value, expected: "the value of a header field")
            else { return nil }
            // A field name is a token, and a field value has no control characters (RFC 9110, 5.1 and 5.5).
            let isToken = name.utf8.allSatisfy { byte in
                (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
                    || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
            guard isToken, !name.isEmpty else {
                reader.report("'\(name.prefix(40))' is not the name of a header field", at: key)
                return nil
            }
            guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                reader.report("expected a value without control characters", at: value)
                return nil
            }
            return Scenario.Argument(name: name, value: text)
        }
    }
}
