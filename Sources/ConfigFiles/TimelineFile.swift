public import LinkModel
internal import Yams

/// A timeline as people write it, with its name.
public struct TimelineFile: Hashable, Sendable {
    /// The word it is chosen by: the file's name without its ending.
    public let id: String
    /// The name people know it by.
    public let name: String
    /// What it is like and where it comes from.
    public let about: String
    /// How far its figures can be trusted; `nil` where the file does not say.
    public let grade: Profile.Grade?
    /// What holds when.
    public let timeline: Timeline

    /// Bytes of what is written at once.
    public static let inlineBytesMax = YAMLReader.bytesMax

    /// The version of the file format, given as `timeline: 1`.
    public static let formatVersion = "1"

    /// Reads a timeline from the text of a file; profiles in it that are files lie relative to its folder.
    public init(parsing text: String, id: String, file: String) throws(FileError) {
        let reader = YAMLReader(file: file)
        guard let result = TimelineReader(reader).readFile(text, id: id), reader.problems.isEmpty else {
            throw reader.error
        }
        self = result
    }

    /// Reads what is written at once, as `0s: 3g, 20s: 100-loss, 50s: edge`; `source` is what messages call it.
    ///
    /// - Parameter readsFiles: Whether links and traces may be given by a path.
    public init(inline text: String, source: String, readsFiles: Bool = true) throws(FileError) {
        let isBraced = text.utf8.first == UInt8(ascii: "{")
        let reader = YAMLReader(file: source, linesBefore: isBraced ? 0 : 1, readsFiles: readsFiles)
        let root = reader.root(
            of: isBraced ? text : "{\n\(text)\n}", expected: "times with links, as '0s: 3g, 20s: 100-loss, 50s: 3g'")
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

    /// A time as timelines have it, such as `20s` or `3m20s`; `nil` if it is none.
    public static func time(_ text: String) -> Nanoseconds? { try? Quantity.time(text) }

    /// Whether the text of a file is meant to be a timeline.
    public static func isMeant(by text: String) -> Bool {
        text.utf8.split(separator: UInt8(ascii: "\n")).contains { $0.starts(with: "timeline:".utf8) }
    }
}

/// Turns a timeline's YAML into a ``LinkModel/Timeline``, reporting everything wrong on the way.
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
            let text = reader.text(version, expected: "the format's version, \(TimelineFile.formatVersion)")
            if let text, text != TimelineFile.formatVersion {
                reader.report(
                    "version '\(text.prefix(20))' is not known; expected \(TimelineFile.formatVersion)", at: version)
            }
        } else {
            reader.report("'timeline: \(TimelineFile.formatVersion)' is missing", at: root)
        }
        let name = keys["name"].flatMap { reader.text($0, expected: "a name") }
        if keys["name"] == nil { reader.report("'name' is missing", at: root) }
        let about = keys["about"].flatMap { reader.text($0, expected: "a sentence or two") } ?? ""
        let grade = keys["grade"].flatMap { reader.word($0, as: Profile.Grade.self) }
        guard let at = keys["at"] else {
            reader.report("'at' is missing: times and what holds from then on", at: root)
            return nil
        }
        guard let timeline = entries(at, repeats: keys["repeat"]), let name else { return nil }
        return TimelineFile(id: id, name: name, about: about, grade: grade, timeline: timeline)
    }

    /// Reads `TIME: what`, in order.
    func entries(_ node: Node, repeats: Node?) -> Timeline? {
        guard let mapping = node.mapping else {
            reader.report("expected times with what holds from then on, as '20s: 100-loss'", at: node)
            return nil
        }
        var entries: [Timeline.Entry] = []
        var places: [Node] = []
        var isWhole = true
        for (key, value) in mapping {
            let start = time(key, "a time such as '20s'")
            let phase = phase(value)
            if let start, let phase {
                entries.append(Timeline.Entry(at: start, phase))
                places.append(key)
            } else {
                isWhole = false
            }
        }
        let repeatsAfter = repeats.flatMap { time($0, "how long one round takes, as '5m'") }
        guard isWhole else { return nil }
        do {
            return try Timeline(entries, repeatsAfter: repeatsAfter)
        } catch {
            let place = error.index.map { $0 < places.count ? places[$0] : node } ?? repeats ?? node
            reader.report(error.message, at: place)
            return nil
        }
    }

    /// Reads what begins at a time.
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
                reader.report("'ramp' needs 'over': how long it takes, as '10s'", at: node)
                return nil
            }
            guard let link = link(value), let length = time(over, "how long it takes, as '10s'") else { return nil }
            return .ramp(to: link, over: length)
        default:
            var jitter = Probability.zero
            if let node = keys["jitter"] {
                guard let text = reader.text(node, expected: "a share such as '50 %'") else { return nil }
                do {
                    jitter = try Quantity.loss(text)
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
        let expected = "links with how long each holds, as '[{3g: 8s}, {100-loss: 2s}]'"
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
            guard let link = link(key), let length = time(value, "how long it holds, as '8s'") else { return nil }
            intervals.append(Timeline.Interval(link, length))
        }
        return intervals
    }

    /// A profile by its name or path, or conditions written out.
    private func link(_ node: Node) -> Timeline.NamedConditions? {
        if node.mapping != nil {
            guard let keys = reader.mapping(node, keys: ProfileReader.conditionKeys, in: "the link") else { return nil }
            return ProfileReader(reader).conditions(keys, node).map { Timeline.NamedConditions("as given", $0) }
        }
        guard let text = reader.text(node, expected: "a profile's name or path, or {down: .., up: ..}") else {
            return nil
        }
        guard reader.readsFiles || !ProfileCatalogue.isPath(text) else {
            reader.report("'\(text.prefix(40))' is a path; files are not read here", at: node)
            return nil
        }
        do {
            let path = ProfileCatalogue.isPath(text) ? TextFile.path(text, inFolderOf: reader.file) : text
            let profile = try ProfileCatalogue.profile(path)
            return Timeline.NamedConditions(profile.id, profile.conditions)
        } catch {
            reader.report("\(error)", at: node)
            return nil
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
