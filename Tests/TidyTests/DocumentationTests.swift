import Foundation
import Testing

/// Links of the documentation.
@Suite struct DocumentationTests {
    /// A link in a page.
    struct Link {
        let file: String
        let line: Int
        /// The path of the target in the repository.
        let path: String
        let anchor: String?
    }

    private static let pages = SourceTree.files.filter { $0.path.hasSuffix(".md") }

    @Test func linksLeadToFilesAndHeadings() {
        let links = Self.pages.flatMap(Self.links)
        #expect(links.count > 300)
        let anchors = Dictionary(uniqueKeysWithValues: Self.pages.map { ($0.path, Self.anchors(of: $0)) })
        for link in links {
            let location = "\(link.file):\(link.line)"
            guard FileManager.default.fileExists(atPath: SourceTree.root.appending(path: link.path).path()) else {
                Issue.record("\(location): there is no file \(link.path)")
                continue
            }
            guard let anchor = link.anchor else { continue }
            let isThere = anchors[link.path]?.contains(anchor) ?? false
            #expect(isThere, "\(location): \(link.path) has no heading #\(anchor)")
        }
    }

    @Test(arguments: [("docs/README.md", "docs/"), ("docs/internals/decisions/README.md", "docs/internals/decisions/")])
    func eachPageIsInTheIndexOfItsFolder(_ index: String, folder: String) throws {
        let page = try #require(Self.pages.first { $0.path == index })
        let linked = Set(Self.links(of: page).map(\.path))
        for path in Self.pages.map(\.path) where path.hasPrefix(folder) && path != index {
            if folder == "docs/" && path.hasPrefix("docs/internals/decisions/0") { continue }
            #expect(linked.contains(path), "\(index) does not list \(path)")
        }
    }

    /// Returns the relative links of a page outside its fenced blocks.
    private static func links(of page: SourceTree.File) -> [Link] {
        let folder = page.path.split(separator: "/").dropLast().map(String.init)
        var links: [Link] = []
        for (index, line) in lines(of: page) {
            for match in line.matches(of: /\]\(([^)\s]+)\)/) where match.1.firstMatch(of: /^[a-z]+:/) == nil {
                let parts = match.1.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                var path = parts[0].isEmpty ? [] : folder
                for name in (parts[0].isEmpty ? page.path[...] : parts[0]).split(separator: "/") where name != "." {
                    if name == "..", !path.isEmpty { path.removeLast() } else { path.append(String(name)) }
                }
                links.append(
                    Link(
                        file: page.path, line: index + 1, path: path.joined(separator: "/"),
                        anchor: parts.count > 1 ? String(parts[1]) : nil))
            }
        }
        return links
    }

    /// Returns the anchors that a renderer of Markdown gives to the headings of a page.
    private static func anchors(of page: SourceTree.File) -> Set<String> {
        var counts: [String: Int] = [:]
        var anchors: Set<String> = []
        for (_, line) in lines(of: page) {
            guard let heading = line.firstMatch(of: /^#+ (.*)/)?.1 else { continue }
            let text = heading.replacing(/\[([^\]]*)\]\([^)]*\)/) { $0.1 }.lowercased()
            let anchor = String(
                text.filter { $0.isLetter || $0.isNumber || " -_".contains($0) }.map { $0 == " " ? "-" : $0 })
            let count = counts[anchor, default: 0]
            counts[anchor] = count + 1
            anchors.insert(count == 0 ? anchor : "\(anchor)-\(count)")
        }
        return anchors
    }

    /// Returns the lines of a page outside its fenced blocks, with their indices.
    private static func lines(of page: SourceTree.File) -> [(Int, Substring)] {
        var isFenced = false
        return page.lines.enumerated().compactMap { index, line in
            if line.drop(while: { $0 == " " }).hasPrefix("```") {
                isFenced.toggle()
                return nil
            }
            return isFenced ? nil : (index, line)
        }
    }
}
