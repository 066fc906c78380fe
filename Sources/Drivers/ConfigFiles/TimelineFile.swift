public import Determinism
public import LinkModel
internal import Scenario
internal import Yams

/// A timeline with its name and description.
public struct TimelineFile: Hashable, Sendable {
    /// The name in commands and files: the file's name without its extension. Case does not matter.
    public let id: String
    /// The display name.
    public let name: String
    /// The description and origin.
    public let about: String
    /// The grade of evidence for its numbers; `nil` if not given.
    public let grade: Profile.Grade?
    /// The timeline.
    public let timeline: Timeline
    /// The absolute start; `nil` if the timeline starts when its conditions are set. Not part of the file.
    public var start: TimelineStart?

    /// The size limit of inline timelines in bytes.
    public static let inlineBytesMax = YAMLReader.bytesMax

    /// The file format's version, given as `timeline: 1`.
    public static let formatVersion = "1"

    /// Parses a timeline file. Paths of profiles are relative to its folder.
    public init(parsing text: String, id: String, file: String) throws(FileError) {
        let reader = YAMLReader(file: file)
        guard let result = TimelineReader(reader).readFile(text, id: id), reader.problems.isEmpty else {
            throw reader.error
        }
        self = result
    }

    /// Parses an inline timeline: `0s: 3g, 20s: 100-loss, 50s: edge`, with or without spaces.
    ///
    /// - Parameters:
    ///   - source: The name of the text in error messages.
    ///   - readsFiles: Whether profiles and traces may be named by a path.
    public init(inline text: String, source: String, readsFiles: Bool = true) throws(FileError) {
        let inline = InlineTimeline(text)
        let reader = YAMLReader(file: source, normalization: inline, readsFiles: readsFiles)
        let root = reader.root(
            of: inline.yaml, expected: "times and links, such as '0s: 3g, 20s: 100-loss, 50s: 3g'")
        let timeline = root.flatMap { TimelineReader(reader).entries($0, repeats: nil) }
        guard let timeline, reader.problems.isEmpty else { throw reader.error }
        self.init(id: "inline", name: text, about: "", grade: nil, timeline: timeline)
    }

    fileprivate init(id: String, name: String, about: String, grade: Profile.Grade?, timeline: Timeline) {
        self.id = id
        self.name = name
        self.about = about
        self.grade = grade
        self.timeline = timeline
    }

    /// Returns a time in the syntax of timelines, such as `20s` or `3m20s`; `nil` if the text is not a time.
    public static func time(_ text: String) -> Nanoseconds? { try? Quantity.time(text) }

    /// Returns whether the text of a file is a timeline: it has the key `timeline`.
    public static func isTimeline(_ text: String) -> Bool {
        text.utf8.split(separator: UInt8(ascii: "\n")).contains { $0.starts(with: "timeline:".utf8) }
    }
}

/// A reader of timelines; reports all errors.
final class TimelineReader {
    private let reader: YAMLReader

    init(_ reader: YAMLReader) { self.reader = reader }

    func readFile(_ text: String, id: String) -> TimelineFile? {
        let expected = "a timeline: 'timeline: 1', a name, 'at' with times and links"
        guard let root = reader.root(of: text, expected: expected),
            let keys = reader.mapping(
                root, keys: ["timeline", "name", "about", "grade", "repeat", "at"], in: "the timeline")
        else { return nil }
        if let version = keys["timeline"] {
            let text = reader.text(version, expected: "the format version, \(TimelineFile.formatVersion)")
            if let text, text != TimelineFile.formatVersion {
                reader.report(
                    "version '\(text.prefix(20))' is not supported; expected \(TimelineFile.formatVersion)", at: version
                )
            }
        } else {
            reader.report("'timeline: \(TimelineFile.formatVersion)' is missing", at: root)
        }
        let name = keys["name"].flatMap { reader.text($0, expected: "a name") }
        if keys["name"] == nil { reader.report("'name' is missing", at: root) }
        let about = keys["about"].flatMap { reader.text($0, expected: "a sentence or two") } ?? ""
        let grade = keys["grade"].flatMap { reader.value($0, as: Profile.Grade.self) }
        guard let at = keys["at"] else {
            reader.report("'at' is missing; expected a mapping from times to links", at: root)
            return nil
        }
        guard let timeline = entries(at, repeats: keys["repeat"]), let name else { return nil }
        return TimelineFile(id: id, name: name, about: about, grade: grade, timeline: timeline)
    }

    /// Reads a mapping from times to links or phases, in order.
    func entries(_ node: Node, repeats: Node?) -> Timeline? {
        guard let mapping = node.mapping else {
            reader.report("expected a mapping from times to links, such as '20s: 100-loss'", at: node)
            return nil
        }
        var entries: [Timeline.Entry] = []
        var keys: [Node] = []
        var isComplete = true
        for (key, value) in mapping {
            let start = time(key, "a time such as '20s'")
            let phase = phase(value)
            if let start, let phase {
                entries.append(Timeline.Entry(at: start, phase))
                keys.append(key)
            } else {
                isComplete = false
            }
        }
        let repeatsAfter = repeats.flatMap { time($0, "the time after which it repeats, such as '5m'") }
        guard isComplete else { return nil }
        do {
            return try Timeline(entries, repeatsAfter: repeatsAfter)
        } catch {
            let culprit = error.index.map { $0 < keys.count ? keys[$0] : node } ?? repeats ?? node
            reader.report(error.message, at: culprit)
            return nil
        }
    }

    /// Reads the phase that begins at a time.
    func phase(_ node: Node) -> Timeline.Phase? {
        let shapes: [(key: String, others: [String])] = [
            ("link", []), ("ramp", ["over"]), ("flap", ["jitter"]),
        ]
        guard let mapping = node.mapping,
            let shape = shapes.first(where: { shape in mapping.keys.contains { $0.scalar?.string == shape.key } })
        else { return link(node).map { .hold($0) } }
        guard let keys = reader.mapping(node, keys: [shape.key] + shape.others, in: "'\(shape.key)'"),
            let value = keys[shape.key]
        else { return nil }
        switch shape.key {
        case "link": return link(value).map { .hold($0) }
        case "ramp":
            guard let over = keys["over"] else {
                reader.report("'ramp' needs 'over', its duration, such as '10s'", at: node)
                return nil
            }
            guard let link = link(value), let length = time(over, "a duration such as '10s'") else { return nil }
            return .ramp(to: link, over: length)
        default:
            var jitter = Probability.zero
            if let node = keys["jitter"] {
                guard let text = reader.text(node, expected: "a percentage such as '50 %'") else { return nil }
                do {
                    jitter = try Quantity.probability(text)
                } catch {
                    reader.report("'jitter': \(error.message)", at: node)
                    return nil
                }
            }
            return flap(value).map { .flap($0, jitter: jitter) }
        }
    }

    /// Reads `[{3g: 8s}, {100-loss: 2s}]`.
    private func flap(_ node: Node) -> [Timeline.Interval]? {
        let expected = "a list of links with durations, such as '[{3g: 8s}, {100-loss: 2s}]'"
        guard let sequence = node.sequence else {
            reader.report("'flap': expected \(expected)", at: node)
            return nil
        }
        var intervals: [Timeline.Interval] = []
        for part in sequence {
            guard let mapping = part.mapping, mapping.count == 1, let (key, value) = mapping.first else {
                reader.report("'flap': expected \(expected)", at: part)
                return nil
            }
            guard let link = link(key), let length = time(value, "a duration such as '8s'") else { return nil }
            intervals.append(Timeline.Interval(link, length))
        }
        return intervals
    }

    /// Reads a link: a profile's name or path, or conditions.
    private func link(_ node: Node) -> Timeline.NamedConditions? {
        if node.mapping != nil {
            guard let keys = reader.mapping(node, keys: ProfileReader.conditionKeys, in: "the link") else { return nil }
            return ProfileReader(reader).conditions(keys, node).map {
                Timeline.NamedConditions(ProfileCatalogue.unnamed, $0)
            }
        }
        guard let text = reader.text(node, expected: "a profile's name or path, or {down: .., up: ..}") else {
            return nil
        }
        guard reader.readsFiles || !ProfileCatalogue.isPath(text) else {
            reader.report("'\(text.prefix(40))' is a path; files cannot be named here", at: node)
            return nil
        }
        do {
            let path =
                ProfileCatalogue.isPath(text) ? TextFile.path(text, inFolderOf: reader.location(node).file) : text
            let profile = try ProfileCatalogue.profile(path)
            if ProfileCatalogue.isPath(path) { addContent(of: profile, path) }
            return Timeline.NamedConditions(profile.id, profile.conditions)
        } catch {
            reader.report("\(error)", at: node)
            return nil
        }
    }

    /// Adds a profile's file, and its traces, to the content of the file that is read.
    private func addContent(of profile: Profile, _ path: String) {
        reader.addContent(ofFile: path)
        for figure in profile.figures where figure.key.hasSuffix(".trace") {
            reader.addContent(ofFile: TextFile.path(figure.value, inFolderOf: path))
        }
    }

    private func time(_ node: Node, _ expected: String) -> Nanoseconds? {
        guard let text = reader.text(node, expected: expected) else { return nil }
        do {
            return try Quantity.time(text)
        } catch {
            reader.report(error.message, at: node)
            return nil
        }
    }
}
