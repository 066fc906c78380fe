import Foundation
import Testing

/// The targets of `Package.swift`, read from its text: the one place that declares the graph.
struct PackageGraph: Sendable {
    /// The layers from the lowest to the highest. A target imports only targets of its own layer or of a lower one.
    static let layers = ["Core", "Apps", "C", "Drivers", "Program"]

    /// Modules of the platform, which are not declared; the targets of `Core` use none of them.
    static let platform: Set<String> = [
        "Foundation", "Synchronization", "Dispatch", "Darwin", "Glibc", "Musl", "Testing",
    ]

    /// A target of `Sources`.
    struct Target: Sendable, CustomTestStringConvertible {
        let layer: String
        let name: String
        /// The declared modules, of this package or of others.
        let modules: [String]

        /// Whether the target makes decisions only: time and randomness are arguments.
        var isPure: Bool { layer == "Core" || layer == "Apps" }
        var testDescription: String { name }
    }

    /// The targets in the order of the file.
    let targets: [Target]
    /// The package of each module of another package.
    let packages: [String: String]

    /// The graph of this package.
    static let package = PackageGraph(SourceTree.files.first { $0.path == "Package.swift" }?.lines ?? [])

    init(_ lines: [Substring]) {
        let text = lines.map { SourceTree.code($0) }.joined(separator: "\n")
        // The table of apps has one line for each: its name and the modules of its target.
        let apps = Self.part(of: text, from: "let apps: KeyValuePairs = [", to: "\n]").split(separator: "\n").map {
            line in
            let texts = Self.texts(in: line)
            return Target(layer: "Apps", name: texts[0], modules: Array(texts[1...]))
        }
        let declared = ["target", "program"].flatMap { function in
            Self.calls(of: function, in: text).compactMap { call in
                let list = call.prefix { $0 != "]" }
                let texts = Self.texts(in: list)
                let hasApps = call.dropFirst(list.count).hasPrefix("] + appNames")
                return texts.count < 2
                    ? nil
                    : Target(
                        layer: texts[0], name: texts[1],
                        modules: Array(texts[2...]) + (hasApps ? apps.map(\.name) : []))
            }
        }
        targets = declared.filter { $0.layer == "Core" } + apps + declared.filter { $0.layer != "Core" }
        let texts = Self.texts(in: Self.part(of: text, from: "let packages = [", to: "]"))
        packages = Dictionary(
            uniqueKeysWithValues: stride(from: 0, to: texts.count - 1, by: 2).map { (texts[$0], texts[$0 + 1]) })
    }

    /// Returns the part of a text after a start and before an end.
    private static func part(of text: String, from start: String, to end: String) -> Substring {
        let after = text.components(separatedBy: start).dropFirst().first ?? ""
        return after[..<(after.range(of: end)?.lowerBound ?? after.endIndex)]
    }

    /// Returns the texts after the opening parenthesis of each call of a function in the list of targets.
    private static func calls(of function: String, in text: String) -> [Substring] {
        text.components(separatedBy: "\n        \(function)(").dropFirst().map { $0[...] }
    }

    /// Returns the texts between quotes.
    private static func texts(in text: Substring) -> [String] {
        text.split(separator: "\"", omittingEmptySubsequences: false).enumerated().compactMap {
            $0.offset.isMultiple(of: 2) ? nil : String($0.element)
        }
    }
}
