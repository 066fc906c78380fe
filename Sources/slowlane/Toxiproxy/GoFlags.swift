internal import Foundation

/// A command line as programs in Go read theirs: one dash or two, a value beside or after `=`, and no flags after the first word
/// that is none.
struct GoFlags {
    /// What may be given.
    struct Flag {
        enum Kind {
            case text
            /// Repeatable; a value may hold several, separated by commas.
            case list
            case toggle
        }

        let name: String
        var aliases: [String] = []
        let kind: Kind
        let about: String

        var names: [String] { [name] + aliases }
    }

    /// What is wrong with a command line.
    struct UsageError: Error, Equatable {
        let text: String
    }

    private var values: [String: [String]] = [:]
    /// The words after the flags.
    private(set) var rest: ArraySlice<String>

    /// Reads `words`.
    init(_ words: ArraySlice<String>, _ flags: [Flag]) throws(UsageError) {
        rest = words
        var namesUsed: Set<String> = []
        while let word = rest.first, word.utf8.count > 1, word.hasPrefix("-") {
            rest.removeFirst()
            if word == "--" { break }
            let text = word.dropFirst(word.hasPrefix("--") ? 2 : 1)
            if text.hasPrefix("-") || text.hasPrefix("=") { throw UsageError(text: "bad flag syntax: \(word)") }
            let name = String(text.prefix { $0 != "=" })
            let inline = text.count > name.count ? String(text.dropFirst(name.count + 1)) : nil
            guard let flag = flags.first(where: { $0.names.contains(name) }) else {
                // Go knows these two even where a program does not.
                let isHelp = name == "help" || name == "h"
                throw UsageError(text: isHelp ? "flag: help requested" : "flag provided but not defined: -\(name)")
            }
            namesUsed.insert(name)
            switch flag.kind {
            case .toggle:
                guard GoText.truth(inline ?? "true") != nil else {
                    throw UsageError(
                        text: "invalid boolean value \(GoText.quoted(inline ?? "")) for -\(name): parse error")
                }
                values[flag.name] = [inline ?? "true"]
            case .text, .list:
                guard let value = inline ?? rest.popFirst() else {
                    throw UsageError(text: "flag needs an argument: -\(name)")
                }
                if flag.kind == .text {
                    values[flag.name] = [value]
                } else {
                    let pieces = value.split(separator: ",", omittingEmptySubsequences: false)
                    values[flag.name, default: []] += pieces.map { $0.trimmingCharacters(in: .whitespaces) }
                }
            }
        }
        for flag in flags {
            let forms = flag.names.filter(namesUsed.contains)
            if forms.count > 1 {
                throw UsageError(text: "Cannot use two forms of the same flag: \(forms[1]) \(forms[0])")
            }
        }
    }

    /// The value of a flag; empty if it was not given.
    func text(_ name: String) -> String { values[name]?.last ?? "" }

    /// Whether a flag was given.
    func has(_ name: String) -> Bool { values[name] != nil }

    /// The values of a flag that may be given several times.
    func list(_ name: String) -> [String] { values[name] ?? [] }

    /// Whether a toggle is on.
    func isOn(_ name: String) -> Bool { GoText.truth(text(name)) == true }
}
