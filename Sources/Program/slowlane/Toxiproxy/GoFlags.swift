internal import Foundation

/// A command line parsed as by Go's `flag` package: one dash or two, values after a space or `=`, and no flags after
/// the first argument that is not one.
struct GoFlags {
    /// A flag that a command accepts.
    struct Flag {
        enum Kind {
            case text
            /// Repeatable; a value may contain several, separated by commas.
            case list
            case toggle
        }

        let name: String
        var aliases: [String] = []
        let kind: Kind
        let about: String

        var names: [String] { [name] + aliases }
    }

    /// An error in a command line, in Go's words.
    struct UsageError: Error, Equatable {
        let text: String
    }

    private var values: [String: [String]] = [:]
    /// The arguments after the flags.
    private(set) var rest: ArraySlice<String>

    /// Parses arguments.
    init(_ arguments: ArraySlice<String>, _ flags: [Flag]) throws(UsageError) {
        rest = arguments
        var namesUsed: Set<String> = []
        while let argument = rest.first, argument.utf8.count > 1, argument.hasPrefix("-") {
            rest.removeFirst()
            if argument == "--" { break }
            let text = argument.dropFirst(argument.hasPrefix("--") ? 2 : 1)
            if text.hasPrefix("-") || text.hasPrefix("=") { throw UsageError(text: "bad flag syntax: \(argument)") }
            let name = String(text.prefix { $0 != "=" })
            let inline = text.count > name.count ? String(text.dropFirst(name.count + 1)) : nil
            guard let flag = flags.first(where: { $0.names.contains(name) }) else {
                // Go treats these two as help even where they are not defined.
                let isHelp = name == "help" || name == "h"
                throw UsageError(text: isHelp ? "flag: help requested" : "flag provided but not defined: -\(name)")
            }
            namesUsed.insert(name)
            switch flag.kind {
            case .toggle:
                guard GoText.bool(inline ?? "true") != nil else {
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

    /// Returns the value of a flag, or an empty text.
    func text(_ name: String) -> String { values[name]?.last ?? "" }

    /// Returns whether a flag was given.
    func has(_ name: String) -> Bool { values[name] != nil }

    /// Returns the values of a repeatable flag.
    func list(_ name: String) -> [String] { values[name] ?? [] }

    /// Returns whether a toggle is on.
    func isOn(_ name: String) -> Bool { GoText.bool(text(name)) == true }
}
