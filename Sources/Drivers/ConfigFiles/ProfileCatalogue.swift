internal import Synchronization

/// The built-in profiles and timelines, and those in files.
public enum ProfileCatalogue {
    /// The reason why a profile or timeline is not available.
    public enum LookupError: Error, CustomStringConvertible {
        /// No built-in profile has that name.
        case unknownProfile(name: String)
        /// No built-in timeline has that name.
        case unknownTimeline(name: String)
        /// The name is a timeline's.
        case isTimeline(name: String)
        /// The file could not be read.
        case unreadable(path: String, reason: String)
        /// The file has errors.
        case invalid(FileError)

        public var description: String {
            switch self {
            case .unknownProfile(let name):
                return "no profile is called '\(name)'\(ProfileCatalogue.profileHint(name)) "
                    + "('slowlane profiles list' shows all; name a file by its path, such as ./\(name).yaml)"
            case .unknownTimeline(let name):
                return "no timeline is called '\(name)'\(ProfileCatalogue.timelineHint(name)) "
                    + "('slowlane profiles list' shows all; name a file by its path, such as ./\(name).yaml, "
                    + "or write the timeline inline, such as '0s:3g,20s:100-loss,50s:3g')"
            case .isTimeline(let name):
                return "'\(name)' is a timeline, not a profile; use --timeline \(name)"
            case .unreadable(let path, let reason): return "cannot read \(path): \(reason)"
            case .invalid(let error): return error.description
            }
        }
    }

    /// The name of conditions that are given in place of a profile.
    public static let unnamed = "as given"

    /// The names of the built-in profiles.
    public static let profileNames = EmbeddedFile.all(in: "profiles").map(\.name)

    /// The names of the built-in timelines.
    public static let timelineNames = EmbeddedFile.all(in: "timelines").map(\.name)

    /// The built-in profiles.
    public static let builtIn: [Profile] = EmbeddedFile.all(in: "profiles").map { profiles[$0] }

    /// The built-in timelines.
    public static let timelines: [TimelineFile] = EmbeddedFile.all(in: "timelines").map { timelineFiles[$0] }

    private static let profiles = ParsedFiles { (file) throws(FileError) in
        try Profile(parsing: file.text, id: file.name, file: "\(file.name).yaml")
    }

    private static let timelineFiles = ParsedFiles { (file) throws(FileError) in
        try TimelineFile(parsing: file.text, id: file.name, file: "\(file.name).yaml")
    }

    /// Built-in files, each parsed when it is used first: most programs use one or two of them.
    private final class ParsedFiles<File: Sendable>: Sendable {
        private let parse: @Sendable (EmbeddedFile) throws(FileError) -> File
        private let files = Mutex<[String: File]>([:])

        init(_ parse: @escaping @Sendable (EmbeddedFile) throws(FileError) -> File) { self.parse = parse }

        subscript(file: EmbeddedFile) -> File {
            if let parsed = files.withLock({ $0[file.path] }) { return parsed }
            do {
                // Not under the lock, because a timeline names profiles.
                let parsed = try parse(file)
                files.withLock { $0[file.path] = parsed }
                return parsed
            } catch {
                preconditionFailure("invalid built-in file \(file.path): \(error)")
            }
        }
    }

    /// Returns the built-in profile with a name or alias; case does not matter.
    public static func builtInProfile(named name: String) -> Profile? {
        let alias = aliases.first { isSameName($0.key, name) }
        return EmbeddedFile.all(in: "profiles").first { isSameName($0.name, alias?.value ?? name) }.map { profiles[$0] }
    }

    /// Returns the built-in timeline with a name; case does not matter.
    public static func builtInTimeline(named name: String) -> TimelineFile? {
        EmbeddedFile.all(in: "timelines").first { isSameName($0.name, name) }.map { timelineFiles[$0] }
    }

    /// Compares names byte by byte without regard to ASCII case, in a time bounded by the shorter name.
    private static func isSameName(_ left: String, _ right: String) -> Bool {
        func lowercased(_ byte: UInt8) -> UInt8 {
            (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
        }
        return left.utf8.elementsEqual(right.utf8) { lowercased($0) == lowercased($1) }
    }

    /// Returns the timeline given by a built-in name, the path of a file, or inline text.
    public static func timeline(_ text: String) throws(LookupError) -> TimelineFile {
        let isInline = InlineTimeline.isInline(text) || text.contains(": ")
        if isPath(text) && !isInline { return try timeline(atPath: text) }
        if let timeline = builtInTimeline(named: text) { return timeline }
        guard isInline || text.contains(":") || text.contains("{") else {
            throw .unknownTimeline(name: String(text.prefix(nameLengthMax)))
        }
        do {
            return try TimelineFile(inline: text, source: "timeline")
        } catch {
            throw .invalid(error)
        }
    }

    /// Returns the timeline of the file at a path.
    public static func timeline(atPath path: String) throws(LookupError) -> TimelineFile {
        let text = try read(path)
        do {
            return try TimelineFile(parsing: text, id: TextFile.stem(path), file: path)
        } catch {
            throw .invalid(error)
        }
    }

    /// A profile or a timeline.
    public enum ProfileOrTimeline: Sendable {
        /// A profile.
        case profile(Profile)
        /// A timeline.
        case timeline(TimelineFile)
    }

    /// Returns the profile or timeline given by a built-in name or the path of a file.
    public static func profileOrTimeline(_ nameOrPath: String) throws(LookupError) -> ProfileOrTimeline {
        if isPath(nameOrPath) { return try profileOrTimeline(atPath: nameOrPath) }
        if let timeline = builtInTimeline(named: nameOrPath) { return .timeline(timeline) }
        return .profile(try profile(nameOrPath))
    }

    /// Returns the profile or timeline in the file at a path, depending on the file's text.
    public static func profileOrTimeline(atPath path: String) throws(LookupError) -> ProfileOrTimeline {
        TimelineFile.isTimeline(try read(path))
            ? .timeline(try timeline(atPath: path)) : .profile(try profile(atPath: path))
    }

    /// Alternative names of built-in profiles.
    public static let aliases = ["4g": "lte", "loss100": "100-loss", "verybad": "very-bad-network"]

    /// The profiles that are meant by words for networks, in lower case without separators. They are suggestions, not
    /// aliases: the words have no agreed figures, or those of several tools.
    static let profileSynonyms = [
        "slow3g": ["chrome-slow-3g", "wpt-3g-slow"], "fast3g": ["chrome-slow-4g", "wpt-3g-fast"],
        "slow4g": ["chrome-slow-4g", "lighthouse-slow-4g"], "fast4g": ["chrome-fast-4g", "lte"],
        "5g": ["5g-mid-band", "5g-uk"], "satellite": ["starlink", "in-flight"], "plane": ["in-flight"],
        "stadium": ["5g-stadium"], "tunnel": ["100-loss"], "outage": ["100-loss"], "airplane": ["offline"],
        "airplanemode": ["offline"], "flightmode": ["offline"], "dialup": ["wpt-dial"], "modem": ["wpt-dial"],
    ]

    /// The timelines that are meant by words for journeys.
    static let timelineSynonyms = [
        "tunnel": ["subway", "train"], "metro": ["subway"], "underground": ["subway"], "lift": ["elevator"],
        "railway": ["train"],
    ]

    /// Returns the hint for an unknown name of a profile: `; did you mean 'edge'?`, or an empty text.
    public static func profileHint(_ name: String) -> String { hint(name, profileNames, profileSynonyms) }

    /// Returns the hint for an unknown name of a timeline.
    public static func timelineHint(_ name: String) -> String { hint(name, timelineNames, timelineSynonyms) }

    private static func hint(_ name: String, _ candidates: [String], _ synonyms: [String: [String]]) -> String {
        let word = String(name.prefix(nameLengthMax).lowercased().filter { $0.isLetter || $0.isNumber })
        return synonyms[word].map(NearestName.question) ?? NearestName.hint(name, in: candidates)
    }

    /// The longest part of an unknown name in an error, in characters.
    private static let nameLengthMax = 60

    /// Returns the profile given by a built-in name or the path of a file.
    ///
    /// A text with a slash or the extension `.yaml` or `.yml` is a path, never a name.
    public static func profile(_ nameOrPath: String) throws(LookupError) -> Profile {
        if isPath(nameOrPath) { return try profile(atPath: nameOrPath) }
        if let profile = builtInProfile(named: nameOrPath) { return profile }
        if let timeline = builtInTimeline(named: nameOrPath) { throw .isTimeline(name: timeline.id) }
        throw LookupError.unknownProfile(name: String(nameOrPath.prefix(nameLengthMax)))
    }

    /// Returns the profile of the file at a path.
    public static func profile(atPath path: String) throws(LookupError) -> Profile {
        let text = try read(path)
        do {
            return try Profile(parsing: text, id: TextFile.stem(path), file: path)
        } catch {
            throw .invalid(error)
        }
    }

    static func isPath(_ text: String) -> Bool {
        text.contains("/") || text.hasSuffix(".yaml") || text.hasSuffix(".yml")
    }

    private static func read(_ path: String) throws(LookupError) -> String {
        do {
            return try TextFile.read(path, bytesMax: YAMLReader.bytesMax)
        } catch {
            throw .unreadable(path: path, reason: error.reason)
        }
    }
}
