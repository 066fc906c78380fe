internal import CommandSupport
public import Scenario
internal import Wire

/// The display of texts of notes. Texts of the scenario file are shown; others are replaced by their length and
/// digest, because reports leave the machine.
public struct TextDisplay: Sendable {
    private let showsAll: Bool
    private let known: Set<ByteKey>

    /// Creates the display for a scenario.
    public init(_ scenario: Scenario, showsAll: Bool) {
        self.showsAll = showsAll
        var texts: [String?] = []
        for note in scenario.notes { texts += [note.title, note.text] }
        for record in scenario.records { texts += [record.title, record.text] }
        for step in scenario.steps {
            switch step.action?.action {
            case .create(_, let title, let text)?, .edit(_, let title, let text)?, .resolve(_, let title, let text)?,
                .editStale(_, let title, let text)?:
                texts += [title, text]
            default: break
            }
            if case .when(_, let condition, _) = step.trigger { texts += condition.checks.map(\.value) }
        }
        for expectation in scenario.expectations {
            switch expectation.kind {
            case .always(_, let condition), .sometimes(_, let condition), .eventually(_, let condition, _),
                .finally(_, let condition):
                texts += condition.checks.map(\.value)
            case .serverRow(_, _, let title, let text): texts += [title, text]
            case .traffic, .sometimesTraffic, .sometimesFault, .threshold, .serverCount, .agree: break
            }
        }
        known = Set(texts.compactMap { $0.map { ByteKey($0) } })
    }

    /// Returns a text in quotes, or its length and digest.
    public func display(_ text: String?) -> String {
        guard let text else { return "no text" }
        if text.isEmpty { return "empty" }
        return isShown(text) ? "'\(TextTable.singleLine(text))'" : Self.hidden(text)
    }

    /// Returns what stands for a text that is not shown; `nil` if the text is shown.
    func replacement(of text: String) -> String? { text.isEmpty || isShown(text) ? nil : Self.hidden(text) }

    /// Returns a reason in which hidden texts of a history are replaced. Reasons contain texts in quotes.
    public func hidingTexts(of history: History, in reason: String) -> String {
        guard !showsAll, reason.contains("'") else { return TextTable.singleLine(reason) }
        var texts: Set<ByteKey> = []
        func add(_ text: String?) {
            if let text, !text.isEmpty, !isShown(text) { texts.insert(ByteKey(text)) }
        }
        for entry in history.entries {
            switch entry.event {
            case .device(_, let state):
                for row in state.rows {
                    add(row.title)
                    add(row.text)
                    for text in row.kept { add(text) }
                }
            case .server(let rows):
                for row in rows {
                    add(row.title)
                    add(row.text)
                }
            default: break
            }
        }
        var result = reason
        for text in texts.map(\.text).sorted(by: { ($0.utf8.count, $0) > ($1.utf8.count, $1) }) {
            result = Self.replacing("'\(text)'", with: Self.hidden(text), in: result)
        }
        return TextTable.singleLine(result)
    }

    private func isShown(_ text: String) -> Bool { showsAll || known.contains(ByteKey(text)) }

    private static func hidden(_ text: String) -> String {
        "(\(TextTable.count(text.count, "character")), digest \(RunTrace.digest(text)))"
    }

    private static func replacing(_ part: String, with other: String, in text: String) -> String {
        let (bytes, pattern) = (Array(text.utf8), Array(part.utf8))
        var result: [UInt8] = []
        var position = 0
        while position < bytes.count {
            if bytes[position...].starts(with: pattern) {
                result += Array(other.utf8)
                position += pattern.count
            } else {
                result.append(bytes[position])
                position += 1
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
