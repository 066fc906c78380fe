internal import ArgumentParser
internal import Scenario

/// The value of `--device`: the name of a device, and the command that is its client.
struct DeviceProgram: ExpressibleByArgument {
    let device: String
    let program: Scenario.Program

    init?(argument: String) {
        guard let equals = argument.firstIndex(of: "=") else { return nil }
        device = String(argument[..<equals])
        guard let words = Self.words(argument[argument.index(after: equals)...]), !words.isEmpty, !device.isEmpty else {
            return nil
        }
        program = Scenario.Program(words)
    }

    /// Returns the words of a command, separated by spaces, with the quoting of a POSIX shell (XCU 2.2); `nil` if a
    /// quotation is not closed.
    static func words(_ text: some StringProtocol) -> [String]? {
        var words: [String] = []
        var word: String?
        var quote: Character?
        var rest = text[...]
        while let character = rest.popFirst() {
            switch (quote, character) {
            case ("'", "'"), ("\"", "\""): quote = nil
            case (nil, "'"), (nil, "\""):
                quote = character
                word = word ?? ""
            case (nil, "\\"):
                guard let next = rest.popFirst() else { return nil }
                word = (word ?? "") + String(next)
            case ("\"", "\\"):
                guard let next = rest.popFirst() else { return nil }
                if next != "\"" && next != "\\" { word = (word ?? "") + "\\" }
                word = (word ?? "") + String(next)
            case (nil, " "), (nil, "\t"), (nil, "\n"):
                if let done = word.take() { words.append(done) }
            default: word = (word ?? "") + String(character)
            }
        }
        guard quote == nil else { return nil }
        if let word { words.append(word) }
        return words
    }
}
