internal import Foundation
internal import Wire

/// The format of the output: plain, or for a terminal with colors, headings and hints.
extension ToxiproxyCLI {
    enum ANSIColor: String, CustomStringConvertible {
        case red = "31"
        case green = "32"
        case yellow = "33"
        case blue = "34"
        case purple = "35"
        case none = "0"

        var description: String { "\u{1B}[\(rawValue)m" }
    }

    func colored(_ text: String, _ color: ANSIColor) -> String {
        isTerminal ? "\(color)\(text)\(ANSIColor.none)" : text
    }

    func hint(_ text: String) -> String { isTerminal ? "\n\(ANSIColor.none)Hint: \(text)\n" : "" }

    /// Returns a cell of a table column that is `tabs` tabs wide.
    func cell(_ text: String, _ color: ANSIColor, tabs: Int) -> String {
        let missing = isTerminal ? max(0, tabs - (text.utf8.count / 8 + 1)) : 0
        let start = isTerminal ? "\(color)" : ""
        return "\(start)\(text)\(isTerminal ? "\(ANSIColor.none)" : "")\t\(String(repeating: "\t", count: missing))"
    }

    func section(_ stream: String, _ toxics: [JSONValue]) -> String {
        let title = "\(ANSIColor.green)\(stream) toxics:\n\(ANSIColor.none)"
        if toxics.isEmpty {
            return title + "\(ANSIColor.red)Proxy has no \(stream) toxics enabled.\n\(ANSIColor.none)"
        }
        return title + toxics.map(line).joined()
    }

    /// Returns the line of a toxic, with its attributes sorted by name.
    func line(_ toxic: JSONValue) -> String {
        let name = toxic["name"].displayText
        let attributes = (toxic["attributes"].object ?? [:])
            .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        let toxicity = String(format: "%.2f", toxic["toxicity"].number ?? 0)
        var text = isTerminal ? "\(ANSIColor.blue)\(name):\(ANSIColor.none)" : name
        text +=
            "\ttype=\(toxic["type"].displayText)\tstream=\(toxic["stream"].displayText)\ttoxicity=\(toxicity)\tattributes=["
        for (key, value) in attributes {
            text += "\t\(key)=\(value.number.map(GoText.format) ?? value.displayText)"
        }
        return text + "\t]\n"
    }
}
