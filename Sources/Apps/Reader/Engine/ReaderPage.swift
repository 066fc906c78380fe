public import Client
internal import Wire

/// A page whose content the server has.
public enum ReaderPage: Hashable, Sendable {
    /// The list of articles, the first page.
    case articles
    /// An article.
    case article(RecordKey)
    /// The profile of an author.
    case profile(RecordKey)

    /// The name of the page in the store.
    var id: String {
        switch self {
        case .articles: "articles"
        case .article(let key): "article-\(key)"
        case .profile(let key): "profile-\(key)"
        }
    }

    /// Creates the page with a name in the store.
    init?(id: String) {
        func key(_ prefix: String) -> RecordKey? {
            id.utf8.starts(with: prefix.utf8)
                ? RecordKey(String(decoding: id.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)) : nil
        }
        if id.utf8.elementsEqual("articles".utf8) {
            self = .articles
        } else if let key = key("article-") {
            self = .article(key)
        } else if let key = key("profile-") {
            self = .profile(key)
        } else {
            return nil
        }
    }

    /// The path of the content after that of the service.
    var path: String {
        switch self {
        case .articles: "/articles"
        case .article(let key): "/articles/\(key)"
        case .profile(let key): "/profiles/\(key)"
        }
    }

    /// The kind of the page: each has a capacity in the cache.
    enum Kind: CaseIterable {
        case articles, article, profile

        /// The number of pages that the cache keeps. A user returns to articles, and rarely to a profile.
        var cachedMax: Int {
            switch self {
            case .articles, .profile: 1
            case .article: 10
            }
        }
    }

    var kind: Kind {
        switch self {
        case .articles: .articles
        case .article: .article
        case .profile: .profile
        }
    }
}

/// The validated content of a page: required parts, and those additional parts that are valid.
struct PageContent {
    /// An article of the list.
    struct Entry {
        let key: RecordKey
        let title: String
        let author: RecordKey
        let authorName: String
        let isLiked: Bool
    }

    /// The parts by name.
    var fields: RecordFields = [:]
    /// The additional parts that are invalid.
    var flawed: [String] = []
    /// The articles of the list.
    var entries: [Entry] = []
    /// The path of a profile's picture.
    var picturePath: String?
    /// Whether the user likes the article.
    var isLiked: Bool?

    /// The longest part in bytes.
    static let valueBytesMax = RecordFields.valueBytesMax
    /// The maximum number of articles in the list; further ones are left out.
    static let entriesMax = 1_000

    /// Creates the content of a page; `nil` if a required part is missing or invalid.
    ///
    /// - Parameter validation: The parts that must be valid.
    init?(_ page: ReaderPage, _ body: JSONValue, _ validation: ReaderBehavior.Validation = .required) {
        let isLenient = validation == .none
        guard body.object != nil else { return nil }
        switch page {
        case .articles:
            guard case .array(let values) = body["articles"] else { return nil }
            for value in values.prefix(Self.entriesMax) {
                guard let entry = Entry(value) else {
                    if isLenient { continue }
                    return nil
                }
                entries.append(entry)
            }
        case .article(let key):
            for name in ["title", "text"] {
                let text = Self.text(body[name])
                guard isLenient || text != nil else { return nil }
                fields[name] = text
            }
            guard Self.isAbout(key, body) else { return nil }
            guard case .bool(let liked) = body["liked"] else { return nil }
            isLiked = liked
        case .profile(let key):
            let name = Self.text(body["name"])
            guard Self.isAbout(key, body), isLenient || name.map({ !$0.isEmpty }) ?? false else { return nil }
            fields["name"] = name
            readAdditional(body)
            if validation == .all, !flawed.isEmpty { return nil }
        }
    }

    private mutating func readAdditional(_ body: JSONValue) {
        for name in ["about", "birthday"] {
            // A part that is missing is no error.
            guard let value = body.object?[name], value != .null else { continue }
            if let text = Self.text(value), name != "birthday" || Self.isDate(text) {
                fields[name] = text
            } else {
                flawed.append(name)
            }
        }
        guard let value = body.object?["picture"], value != .null else { return }
        // A path of another service would get the user's credentials.
        if let path = Self.text(value), path.utf8.starts(with: "\(ReaderEngine.basePath)/".utf8),
            path.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        {
            picturePath = path
        } else {
            flawed.append("picture")
        }
    }

    static func text(_ value: JSONValue) -> String? {
        value.text.flatMap { $0.utf8.count <= valueBytesMax ? $0 : nil }
    }

    /// Returns whether a body is that of a record: it names no other one.
    private static func isAbout(_ key: RecordKey, _ body: JSONValue) -> Bool {
        body.object?["key"].map { $0.text.flatMap { RecordKey($0) } == key } ?? true
    }

    /// Returns whether a text is a calendar date such as `1990-05-01`.
    static func isDate(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == 10, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-") else { return false }
        func number(_ range: Range<Int>) -> Int? {
            var value = 0
            for byte in bytes[range] {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                value = value * 10 + Int(byte - UInt8(ascii: "0"))
            }
            return value
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), (1...12).contains(month)
        else { return false }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return (1...days[month - 1]).contains(day)
    }
}

extension PageContent.Entry {
    init?(_ json: JSONValue) {
        guard let key = json["key"].text.flatMap({ RecordKey($0) }), let title = PageContent.text(json["title"]),
            let author = json["author"].text.flatMap({ RecordKey($0) }),
            let authorName = PageContent.text(json["authorName"]), case .bool(let isLiked) = json["liked"]
        else { return nil }
        self.init(key: key, title: title, author: author, authorName: authorName, isLiked: isLiked)
    }
}

/// A page in the cache.
struct CachedPage {
    /// The body, which is validated each time it is shown.
    var body: JSONValue
    /// The entity tag; `nil` for none.
    var tag: String?
    /// The time of the last confirmation by the server, in milliseconds since 1970 of the device's wall clock.
    var fetchedAt: Int
    /// The picture of a profile.
    var picture = Picture.none

    /// A picture.
    enum Picture: Hashable {
        /// Not loaded, or there is none.
        case none
        case failed
        case loaded(String)
    }

    /// The longest body that is cached, in bytes of JSON.
    static let bytesMax = 256 << 10

    init(body: JSONValue, tag: String?, fetchedAt: Int) {
        self.body = body
        self.tag = tag
        self.fetchedAt = fetchedAt
    }

    init?(stored json: JSONValue) {
        guard case .integer(let fetchedAt) = json["fetched"] else { return nil }
        self.init(body: json["body"], tag: json["tag"].text, fetchedAt: Int(fetchedAt))
        if let text = json["picture"].text { picture = .loaded(text) }
    }

    var stored: JSONValue {
        var loaded: JSONValue = .null
        if case .loaded(let text) = picture { loaded = .text(text) }
        return [
            "body": body, "tag": tag.map { .text($0) } ?? .null, "fetched": .integer(Int64(fetchedAt)),
            "picture": loaded,
        ]
    }
}
