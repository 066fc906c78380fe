internal import Foundation
public import LinkModel
internal import Yams

/// Named conditions of both directions, with the source of each number.
public struct Profile: Hashable, Sendable {
    /// The word it is chosen by: the file's name without its ending.
    public let id: String
    /// The name people know it by.
    public let name: String
    /// What it is like and where it comes from, in a sentence or two.
    public let about: String
    /// The kind of network interface a device would show.
    public let interface: Interface
    /// What the link does.
    public let conditions: Conditions
    /// Every number with where it comes from, in the order of the file's keys.
    public let figures: [Figure]

    /// The kind of network interface a device would show.
    public enum Interface: String, CaseIterable, Sendable {
        /// 2G to 5G.
        case cellular
        /// 802.11.
        case wifi
        /// Ethernet and what is behind a cable.
        case wired
    }

    /// One number of a profile.
    public struct Figure: Hashable, Sendable {
        /// Which one: `down.rate`.
        public let key: String
        /// As it was written.
        public let value: String
        /// How far to trust it; `nil` where the file gives no source.
        public let grade: Grade?
        /// Where it comes from.
        public let source: String?
    }

    /// How far a number can be trusted to be what it claims to be.
    public enum Grade: String, CaseIterable, Sendable {
        /// Printed by the original tool itself, or by the kernel that carried it out.
        case observed
        /// Read in the original's source code.
        case code
        /// In a table or a program published by somebody who uses it.
        case published
        /// Nobody's figure: chosen for a reason that is given.
        case judgement
    }

    /// The version of the file format, given as `profile: 1`.
    public static let formatVersion = "1"

    /// Reads a profile from the text of a file.
    ///
    /// - Parameters:
    ///   - text: The YAML.
    ///   - id: The word it will be known by.
    ///   - file: The file's name in messages.
    public init(parsing text: String, id: String, file: String) throws(FileError) {
        let reader = YAMLReader(file: file)
        guard let profile = ProfileReader(reader).read(text, id: id), reader.problems.isEmpty else {
            throw reader.error
        }
        self = profile
    }

    fileprivate init(
        id: String, name: String, about: String, interface: Interface, conditions: Conditions, figures: [Figure]
    ) {
        self.id = id
        self.name = name
        self.about = about
        self.interface = interface
        self.conditions = conditions
        self.figures = figures
    }
}

/// Turns a profile's YAML into a ``Profile``, and that of conditions alone into conditions, reporting everything wrong on
/// the way.
final class ProfileReader {
    let reader: YAMLReader
    var sources: [String: String] = [:]
    var figures: [Profile.Figure] = []

    init(_ reader: YAMLReader) {
        self.reader = reader
    }

    func read(_ text: String, id: String) -> Profile? {
        let expected = "a profile: 'profile: 1', a name, 'down' and 'up'"
        guard let root = reader.root(of: text, expected: expected),
            let keys = reader.mapping(
                root, keys: ["profile", "name", "about", "interface", "sources"] + Self.conditionKeys,
                in: "the profile")
        else { return nil }

        if let version = keys["profile"] {
            let text = reader.text(version, expected: "the format's version, \(Profile.formatVersion)")
            if let text, text != Profile.formatVersion {
                reader.report(
                    "version '\(text.prefix(20))' is not known; expected \(Profile.formatVersion)", at: version)
            }
        } else {
            reader.report("'profile: \(Profile.formatVersion)' is missing", at: root)
        }
        readSources(keys["sources"])
        let conditions = conditions(keys, root)
        let interface = keys["interface"].map { reader.word($0, as: Profile.Interface.self) } ?? .cellular
        let name = keys["name"].flatMap { reader.text($0, expected: "a name") }
        if keys["name"] == nil { reader.report("'name' is missing", at: root) }
        let about = keys["about"].flatMap { reader.text($0, expected: "a sentence or two") } ?? ""

        guard let conditions, let interface, let name else { return nil }
        return Profile(
            id: id, name: name, about: about, interface: interface,
            conditions: conditions, figures: figures)
    }

    /// The keys that ``conditions(_:_:)`` reads.
    static let conditionKeys = ["down", "up", "dns-delay", "access"]

    /// Reads what holds in both directions.
    func conditions(_ keys: [String: Node], _ root: Node) -> Conditions? {
        let down = direction(keys["down"], "down", root)
        let up = direction(keys["up"], "up", root)
        let dnsDelay = figure(keys["dns-delay"], "dns-delay", default: .zero, Quantity.delay)
        let access = figure(keys["access"], "access", default: .open, Quantity.access)
        guard let down, let up, let dnsDelay, let access else { return nil }
        return Conditions(up: up, down: down, dnsDelay: dnsDelay, connectionPolicy: access)
    }

    private func readSources(_ node: Node?) {
        guard let node else { return }
        guard let mapping = node.mapping else {
            return reader.report("sources: expected a mapping from a word to where the numbers come from", at: node)
        }
        for (key, value) in mapping {
            if let word = key.scalar?.string, let text = reader.text(value, expected: "where the numbers come from") {
                sources[word] = text
            }
        }
    }

    private func direction(_ node: Node?, _ name: String, _ root: Node) -> DirectionConditions? {
        guard let node else {
            reader.report("'\(name)' is missing: rate, delay, loss and queue of that direction", at: root)
            return nil
        }
        let known = [
            "rate", "trace", "delay", "jitter", "loss", "bursts", "lose-packets", "duplicate", "reorder", "queue",
        ]
        guard let keys = reader.mapping(node, keys: known, in: "'\(name)'") else { return nil }
        let rate = figure(keys["rate"], "\(name).rate", default: Rate?.none, Quantity.rate)
        let delay = figure(keys["delay"], "\(name).delay", default: .zero, Quantity.delay)
        let loss = figure(keys["loss"], "\(name).loss", default: .zero, Quantity.loss)
        let queue = figure(keys["queue"], "\(name).queue", default: .standard, Quantity.queue)
        let jitter = figure(keys["jitter"], "\(name).jitter", default: Jitter?.none, Quantity.jitter)
        let bursts = figure(keys["bursts"], "\(name).bursts", default: BurstLoss?.none, Quantity.bursts)
        let lost = figure(
            keys["lose-packets"], "\(name).lose-packets", default: PacketNumbers?.none, Quantity.packetNumbers)
        let duplication = figure(keys["duplicate"], "\(name).duplicate", default: .zero, Quantity.loss)
        let reordering = figure(keys["reorder"], "\(name).reorder", default: .zero, Quantity.loss)
        let trace = keys["trace"].map { self.trace($0, "\(name).trace") } ?? DeliveryTrace?.none
        if let rate, rate != nil, let both = keys["trace"] {
            reader.report("'\(name).trace': there is a rate already; expected one of both", at: both)
        }
        if let reordering, reordering != .zero, delay == .zero, jitter == Jitter?.none {
            reader.report("'\(name).reorder': without a delay there is nothing to skip", at: keys["reorder"])
        }
        guard let rate, let delay, let loss, let queue, let jitter, let bursts, let lost, let duplication,
            let reordering
        else { return nil }
        return DirectionConditions(
            rate: rate, trace: trace, delay: delay, loss: loss, queue: queue, jitter: jitter, bursts: bursts,
            lostPackets: lost, duplication: duplication, reordering: reordering)
    }

    /// Reads the trace that a figure names by its path.
    private func trace(_ node: Node, _ key: String) -> DeliveryTrace? {
        let path = figure(node, key, default: String?.none) { (text) throws(Quantity.Refusal) -> String? in text }
        guard let path, let path else { return nil }
        guard reader.readsFiles else {
            reader.report("'\(key)': files are not read here", at: node)
            return nil
        }
        do {
            return try TraceFile.read(TextFile.path(path, inFolderOf: reader.file))
        } catch {
            for problem in error.problems { reader.report("'\(key)': \(problem)", at: node) }
            return nil
        }
    }

    /// Reads `value`, or `{value, source, grade}`.
    private func figure<Value>(
        _ node: Node?, _ key: String, default: Value, _ parse: (String) throws(Quantity.Refusal) -> Value
    ) -> Value? {
        guard let node else { return `default` }
        var valueNode = node
        var grade: Profile.Grade?
        var source: String?
        if node.mapping != nil {
            guard let parts = reader.mapping(node, keys: ["value", "source", "grade"], in: "'\(key)'") else {
                return nil
            }
            guard let value = parts["value"] else {
                reader.report("'\(key)' has no 'value'", at: node)
                return nil
            }
            valueNode = value
            grade = parts["grade"].flatMap { reader.word($0, as: Profile.Grade.self) }
            if let word = parts["source"], let text = reader.text(word, expected: "a word of 'sources'") {
                source = sources[text]
                if source == nil {
                    reader.report(
                        "source '\(text.prefix(40))' is not among 'sources'\(NearestName.hint(text, in: sources.keys))",
                        at: word)
                }
            }
        }
        guard let text = reader.text(valueNode, expected: "a value with its unit, or {value, source, grade}") else {
            return nil
        }
        do {
            let value = try parse(text)
            figures.append(Profile.Figure(key: key, value: text, grade: grade, source: source))
            return value
        } catch {
            reader.report("'\(key)': \(error.message)", at: valueNode)
            return nil
        }
    }
}
