internal import Determinism
internal import LinkModel
internal import Scenario
internal import Yams

/// The values of a mapping, with the shapes of the format's table.
struct ScenarioFields {
    let node: Node
    let object: ScenarioFormat.Object
    let values: [String: Node]
    let reader: ScenarioReader
    /// Whether all values have been read without which the mapping has none.
    var isWhole = true

    subscript(key: String) -> Node? { values[key] }

    /// Whether the format has all keys of the mapping. A key that it does not have may be a misspelt one.
    var knowsAllKeys: Bool { values.count == node.mapping?.count }

    func report(_ message: @autoclosure () -> String) { reader.reader.report(message(), at: node) }

    /// Returns which of the keys, of which the mapping needs one, is present; reports none or several. A misspelt key is
    /// reported once.
    func only(of keys: [String], expected: String) -> String? {
        let found = keys.filter { values[$0] != nil }
        if found.count == 1 { return found[0] }
        if !found.isEmpty || knowsAllKeys { report(expected) }
        return nil
    }

    /// Returns whether the mapping has `min` or `max`; reports neither.
    func hasBound(_ what: String) -> Bool {
        if values["min"] != nil || values["max"] != nil { return true }
        report("\(what) needs 'min' or 'max'")
        return false
    }

    /// Returns whether the table allows at most as many elements of a list as there are; reports a length that it does
    /// not allow.
    func hasLength(_ key: String) -> Bool {
        guard let node = values[key], let items = node.sequence else { return true }
        guard case .list(_, let least, let most)? = object.key(key)?.shape else { return true }
        if items.count > most {
            reader.reader.report("'\(key)' has \(items.count) entries; at most \(most) are allowed", at: node)
            return false
        }
        if items.count < least {
            reader.reader.report(
                "'\(key)' needs \(least == most ? "" : "at least ")\(least) \(least == 1 ? "entry" : "entries")",
                at: node)
        }
        return true
    }
}

/// Reads values.
extension ScenarioReader {
    /// Reads a mapping of the format's table; reports unknown and missing keys.
    ///
    /// - Parameters:
    ///   - names: The names that are keys of the mapping, such as those of devices.
    ///   - requires: Whether missing keys are reported.
    func fields(
        _ node: Node, _ object: ScenarioFormat.Object, names: [String] = [], requires: Bool = true
    ) -> ScenarioFields? {
        guard
            let values = reader.mapping(
                node, keys: object.keys.map(\.name) + names, in: object.title, synonyms: ScenarioFormat.synonyms)
        else { return nil }
        if requires {
            for key in object.keys where key.isRequired && values[key.name] == nil {
                reader.report("\(object.title) needs '\(key.name)'", at: node)
            }
        }
        return ScenarioFields(node: node, object: object, values: values, reader: self)
    }

    func list(_ node: Node?) -> [Node] {
        guard let node else { return [] }
        guard let sequence = node.sequence else {
            reader.report("expected a list", at: node)
            return []
        }
        return Array(sequence)
    }

    /// Returns the entries of a mapping.
    func entries(_ node: Node?, expected: String) -> [(key: Node, value: Node)] {
        guard let node else { return [] }
        guard let mapping = node.mapping else {
            reader.report("expected \(expected)", at: node)
            return []
        }
        return mapping.map { ($0.key, $0.value) }
    }

    func location(_ node: Node) -> SourceLocation { reader.location(node) }

    /// Returns the text of a scalar; a plain `null` or nothing is an error.
    func text(_ node: Node) -> String? {
        guard let text = reader.text(node, expected: "a text") else { return nil }
        if node.scalar?.style == .plain, ["", "~", "null", "Null", "NULL"].contains(text) {
            reader.report("expected a text; the empty text is ''", at: node)
            return nil
        }
        return text
    }

    func kebabCase(_ node: Node) -> String? {
        guard let name = reader.text(node, expected: "a name") else { return nil }
        guard !name.isEmpty, name.utf8.allSatisfy({ (97...122).contains($0) || (48...57).contains($0) || $0 == 45 })
        else {
            reader.report("'\(name.prefix(40))' is not kebab-case, such as 'edit-conflict'", at: node)
            return nil
        }
        return name
    }

    private func quantity<Value>(
        _ node: Node, expected: String, _ parse: (String) throws(Quantity.ParseError) -> Value
    ) -> Value? {
        guard let text = reader.text(node, expected: expected) else { return nil }
        do throws(Quantity.ParseError) {
            return try parse(text)
        } catch {
            reader.report(error.message, at: node)
            return nil
        }
    }

    func time(_ node: Node) -> Nanoseconds? {
        quantity(node, expected: "a time such as '20s'") { text throws(Quantity.ParseError) in
            try Quantity.time(text)
        }
    }

    func signedTime(_ node: Node) -> Nanoseconds? {
        guard let text = reader.text(node, expected: "a shift such as '+6h' or '-30m'") else { return nil }
        guard let sign = text.first, sign == "+" || sign == "-" else {
            reader.report("'\(text.prefix(40))' has no sign; expected a shift such as '+6h' or '-30m'", at: node)
            return nil
        }
        do {
            let time = try Quantity.shift(String(text.dropFirst()))
            return sign == "-" ? .zero - time : time
        } catch {
            reader.report(error.message, at: node)
            return nil
        }
    }

    func percentage(_ node: Node) -> Probability? {
        quantity(node, expected: "a percentage such as '50 %'") { text throws(Quantity.ParseError) in
            try Quantity.probability(text)
        }
    }

    func size(_ node: Node) -> Int? {
        quantity(node, expected: "a number of bytes, such as '2MB'") { text throws(Quantity.ParseError) in
            try Quantity.size(text)
        }
    }

    func number(_ node: Node, _ expected: String, max: Int = ScenarioFormat.numberMax) -> Int? {
        guard let text = reader.text(node, expected: expected) else { return nil }
        guard let number = Int(text), (0...max).contains(number) else {
            reader.report("'\(text.prefix(40))': expected \(expected)", at: node)
            return nil
        }
        return number
    }

    func integer(_ node: Node, _ range: ClosedRange<Int>) -> Int? {
        let expected = ScenarioFormat.text(of: .integer(range))
        guard let text = reader.text(node, expected: expected) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            reader.report("'\(text.prefix(40))': expected \(expected)", at: node)
            return nil
        }
        return number
    }

    func boolean(_ node: Node) -> Bool? { oneOf(node, ["true", "false"]).map { $0 == "true" } }

    func oneOf(_ node: Node, _ values: [String]) -> String? {
        let expected = ScenarioFormat.alternatives(values)
        guard let text = reader.text(node, expected: expected) else { return nil }
        guard values.contains(text) else {
            reader.report(
                "'\(text.prefix(40))': expected \(expected)"
                    + NearestName.hint(text, in: values, synonyms: ScenarioFormat.synonyms), at: node)
            return nil
        }
        return text
    }

    private func known(_ node: Node, _ names: some Collection<String>, kind: String) -> String? {
        guard let name = reader.text(node, expected: "a \(kind)") else { return nil }
        guard names.contains(name) else {
            reader.report("no \(kind) is called '\(name.prefix(40))'\(NearestName.hint(name, in: names))", at: node)
            return nil
        }
        return name
    }

    func knownDevice(_ node: Node) -> String? { known(node, deviceNames, kind: "device") }
    func knownActor(_ node: Node) -> String? { known(node, deviceNames + writerNames, kind: "device or writer") }
    func knownRow(_ node: Node) -> String? { known(node, rows, kind: "note") }
    func knownMark(_ node: Node) -> String? { known(node, marks, kind: "mark") }

    /// Reads the name of a new note.
    func newRow(_ node: Node) -> String? {
        guard let name = reader.text(node, expected: "the name of a note") else { return nil }
        let isName = name.first.map { $0.isASCII && $0.isLetter } ?? false
        guard isName, name.utf8.allSatisfy(Self.isRowByte) else {
            reader.report(
                "'\(name.prefix(40))': expected a name of ASCII letters, digits, '-' and '_' that begins with a letter",
                at: node)
            return nil
        }
        guard name != "any" && name != "count" else {
            reader.report("'\(name)' has another meaning; choose another name for the note", at: node)
            return nil
        }
        return name
    }

    private static func isRowByte(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 45 || byte == 95
    }

    /// Reads the end of a window of requests: a time, a mark, or the end of the run.
    func windowEnd(_ node: Node) -> TimeReference? {
        node.scalar?.string == TimeReference.endName ? .end : reference(node)
    }

    /// Reads a time or a mark.
    func reference(_ node: Node) -> TimeReference? {
        guard let text = node.scalar?.string else {
            reader.report("expected a time or a mark", at: node)
            return nil
        }
        if text.first?.isNumber == true { return time(node).map { .time($0) } }
        return knownMark(node).map { .mark($0) }
    }

    /// Reads a pattern of requests.
    func pattern(_ node: Node) -> RequestPattern? {
        let expected = "a request such as 'PUT n1', 'POST any' or 'any'"
        guard let text = reader.text(node, expected: expected) else { return nil }
        if text == "any" { return RequestPattern(method: nil, row: nil) }
        let words = text.split(separator: " ").map(String.init)
        let methods = ScenarioFormat.methods + ["any"]
        guard words.count == 2, methods.contains(words[0]) else {
            var hint = ""
            if let first = words.first, methods.contains(first.uppercased()), first != "any" {
                hint = "; methods are written in capitals"
            }
            reader.report("'\(text.prefix(40))': expected \(expected)\(hint)", at: node)
            return nil
        }
        guard words[1] == "any" || rows.contains(words[1]) else {
            reader.report("no note is called '\(words[1].prefix(40))'\(NearestName.hint(words[1], in: rows))", at: node)
            return nil
        }
        return RequestPattern(
            method: words[0] == "any" ? nil : words[0], row: words[1] == "any" ? nil : words[1])
    }
}
