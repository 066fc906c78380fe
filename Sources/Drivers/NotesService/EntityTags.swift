internal import NotesContract
internal import Wire

/// Entity tags (RFC 9110, 8.8.3 and 13.1).
enum EntityTags {
    static func of(_ revision: Revision) -> String { "\"\(revision)\"" }

    /// Returns whether a list of tags contains one. Like the original, it accepts tags without quotes.
    static func matches(_ list: String, _ tag: String, allowsWeak: Bool) -> Bool {
        parse(list).contains { $0.isAny || (allowsWeak || !$0.isWeak) && $0.opaque.hasSameBytes(as: tag) }
    }

    /// A member of a list of tags.
    struct Tag {
        /// The tag without its quotes.
        let opaque: String
        let isWeak: Bool
        /// Whether the member is `*`.
        let isAny: Bool

        /// The member with quotes.
        var text: String { isAny ? "*" : (isWeak ? "W/" : "") + "\"\(opaque)\"" }
    }

    static func parse(_ list: String) -> [Tag] {
        list.split(separator: ",").map { part in
            var tag = part.drop { $0 == " " || $0 == "\t" }
            while tag.last == " " || tag.last == "\t" { tag.removeLast() }
            if tag == "*" { return Tag(opaque: "*", isWeak: false, isAny: true) }
            let isWeak = tag.hasPrefix("W/")
            if isWeak { tag = tag.dropFirst(2) }
            if tag.hasPrefix("\""), tag.hasSuffix("\""), tag.count >= 2 { tag = tag.dropFirst().dropLast() }
            return Tag(opaque: String(tag), isWeak: isWeak, isAny: false)
        }
    }
}
