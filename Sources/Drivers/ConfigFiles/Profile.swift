internal import Determinism
internal import Foundation
public import LinkModel
internal import Yams

/// A profile: named conditions of both directions, with the source of each number.
public struct Profile: Hashable, Sendable {
    /// The name in commands and files: the file's name without its extension. Case does not matter.
    public let id: String
    /// The display name.
    public let name: String
    /// The description and origin in a sentence or two.
    public let about: String
    /// The kind of network interface that a device reports.
    public let interface: Interface
    /// The conditions of the link.
    public let conditions: Conditions
    /// Every number with its source, in the order of the file's keys.
    public let figures: [Figure]

    /// The kind of network interface that a device reports.
    public enum Interface: String, CaseIterable, Sendable {
        /// 2G to 5G.
        case cellular
        /// 802.11.
        case wifi
        /// Ethernet, DSL, cable and fibre.
        case wired
    }

    /// A number of a profile with its source.
    public struct Figure: Hashable, Sendable {
        /// The key: `down.rate`.
        public let key: String
        /// The value as written in the file.
        public let value: String
        /// The grade of evidence; `nil` without a source.
        public let grade: Grade?
        /// The source.
        public let source: String?
    }

    /// The grade of evidence for a number.
    public enum Grade: String, CaseIterable, Sendable {
        /// Printed by the tool that the profile imitates, or by the kernel that applied the tool's settings.
        case observed
        /// Read in the source code of the tool that the profile imitates.
        case code
        /// Taken from a published table or program.
        case published
        /// Chosen by judgement; the source gives the reason.
        case judgement
    }

    /// The file format's version, given as `profile: 1`.
    public static let formatVersion = "1"

    /// Parses a profile file.
    ///
    /// - Parameters:
    ///   - text: The YAML.
    ///   - id: The profile's name.
    ///   - file: The file's name in error messages.
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

/// A reader of profiles, and of conditions without a profile; reports all errors.
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
            let text = reader.text(version, expected: "the format version, \(Profile.formatVersion)")
            if let text, text != Profile.formatVersion {
                reader.report(
                    "version '\(text.prefix(20))' is not supported; expected \(Profile.formatVersion)", at: version)
            }
        } else {
            reader.report("'profile: \(Profile.formatVersion)' is missing", at: root)
        }
        readSources(keys["sources"])
        let conditions = conditions(keys, root)
        let interface = keys["interface"].map { reader.value($0, as: Profile.Interface.self) } ?? .cellular
        let name = keys["name"].flatMap { reader.text($0, expected: "a name") }
        if keys["name"] == nil { reader.report("'name' is missing", at: root) }
        let about = keys["about"].flatMap { reader.text($0, expected: "a sentence or two") } ?? ""

        guard let conditions, let interface, let name else { return nil }
        return Profile(
            id: id, name: name, about: about, interface: interface,
            conditions: conditions, figures: figures)
    }

    /// The keys of ``conditions(_:_:)``.
    static let conditionKeys = ["down", "up", "dns-delay", "access", "udp", "mtu", "udp-idle", "udp-rebind"]

    /// Reads the conditions of both directions.
    func conditions(_ keys: [String: Node], _ root: Node) -> Conditions? {
        let down = direction(keys["down"], "down", root)
        let up = direction(keys["up"], "up", root)
        let dnsDelay = figure(keys["dns-delay"], "dns-delay", default: .zero, Quantity.delay)
        let access = figure(keys["access"], "access", default: .open, Quantity.connectionPolicy)
        guard let down, let up, let dnsDelay, let access, let datagrams = datagrams(keys) else { return nil }
        return Conditions(
            up: up, down: down, dnsDelay: dnsDelay, connectionPolicy: access, datagrams: datagrams)
    }

    private func datagrams(_ keys: [String: Node]) -> DatagramConditions? {
        let policy = figure(keys["udp"], "udp", default: .open, Quantity.datagramPolicy)
        let mtu = figure(keys["mtu"], "mtu", default: Int?.none, Quantity.mtu)
        let idle = figure(keys["udp-idle"], "udp-idle", default: Nanoseconds?.none, Quantity.positiveTime)
        let rebind = figure(keys["udp-rebind"], "udp-rebind", default: Nanoseconds?.none, Quantity.positiveTime)
        guard let policy, let mtu, let idle, let rebind else { return nil }
        return DatagramConditions(policy: policy, mtu: mtu, idle: idle, rebind: rebind)
    }

    private func readSources(_ node: Node?) {
        guard let node else { return }
        guard let mapping = node.mapping else {
            return reader.report("'sources': expected a mapping from names to the sources of numbers", at: node)
        }
        for (key, value) in mapping {
            if let name = key.scalar?.string, let text = reader.text(value, expected: "the source of numbers") {
                sources[name] = text
            }
        }
    }

    private func direction(_ node: Node?, _ name: String, _ root: Node) -> DirectionConditions? {
        guard let node else {
            reader.report("'\(name)' is missing; expected rate, delay, loss and queue of that direction", at: root)
            return nil
        }
        let known = [
            "rate", "trace", "delay", "jitter", "loss", "bursts", "lose-packets", "duplicate", "reorder", "queue",
        ]
        guard let keys = reader.mapping(node, keys: known, in: "'\(name)'") else { return nil }
        let rate = figure(keys["rate"], "\(name).rate", default: Rate?.none, Quantity.rate)
        let delay = figure(keys["delay"], "\(name).delay", default: .zero, Quantity.delay)
        let loss = figure(keys["loss"], "\(name).loss", default: .zero, Quantity.probability)
        let queue = figure(keys["queue"], "\(name).queue", default: .standard, Quantity.queue)
        let jitter = figure(keys["jitter"], "\(name).jitter", default: Jitter?.none, Quantity.jitter)
        let bursts = figure(keys["bursts"], "\(name).bursts", default: BurstLoss?.none, Quantity.bursts)
        let lost = figure(
            keys["lose-packets"], "\(name).lose-packets", default: PacketNumbers?.none, Quantity.packetNumbers)
        let duplication = figure(keys["duplicate"], "\(name).duplicate", default: .zero, Quantity.probability)
        let reordering = figure(keys["reorder"], "\(name).reorder", default: .zero, Quantity.probability)
        let trace = keys["trace"].map { self.trace($0, "\(name).trace") } ?? DeliveryTrace?.none
        if let rate, rate != nil, let both = keys["trace"] {
            reader.report("'\(name).trace': expected either a trace or a rate, not both", at: both)
        }
        if let reordering, reordering != .zero, delay == .zero, jitter == Jitter?.none {
            reader.report("'\(name).reorder' needs a delay that packets can skip", at: keys["reorder"])
        }
        guard let rate, let delay, let loss, let queue, let jitter, let bursts, let lost, let duplication,
            let reordering
        else { return nil }
        return DirectionConditions(
            rate: rate, trace: trace, delay: delay, loss: loss, queue: queue, jitter: jitter, bursts: bursts,
            lostPackets: lost, duplication: duplication, reordering: reordering)
    }

    /// Reads the trace file named by a value.
    private func trace(_ node: Node, _ key: String) -> DeliveryTrace? {
        let path = figure(node, key, default: String?.none) { (text) throws(Quantity.ParseError) -> String? in text }
        guard let path, let path else { return nil }
        guard reader.readsFiles else {
            reader.report("'\(key)': files cannot be named here", at: node)
            return nil
        }
        do {
            let file = TextFile.path(path, inFolderOf: reader.file)
            reader.addContent(ofFile: file)
            return try TraceFile.read(file)
        } catch {
            for problem in error.problems { reader.report("'\(key)': \(problem)", at: node) }
            return nil
        }
    }

    /// Reads `value`, or `{value, source, grade}`.
    private func figure<Value>(
        _ node: Node?, _ key: String, default: Value, _ parse: (String) throws(Quantity.ParseError) -> Value
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
            grade = parts["grade"].flatMap { reader.value($0, as: Profile.Grade.self) }
            if let node = parts["source"], let text = reader.text(node, expected: "a name from 'sources'") {
                source = sources[text]
                if source == nil {
                    reader.report(
                        "source '\(text.prefix(40))' is not defined in 'sources'\(NearestName.hint(text, in: sources.keys))",
                        at: node)
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
