/// A pattern of file names with `*`, `?`, `[abc]`, `[a-z]` and `[!abc]` (POSIX.1-2024, XCU 2.14).
public struct GlobPattern: Sendable {
    private enum Element {
        case one(Unicode.Scalar)
        case anyOne
        case anyNumber
        case set([ClosedRange<Unicode.Scalar>], isNegated: Bool)
    }

    private let elements: [Element]
    private let matchesHidden: Bool

    /// Creates a pattern of one path component.
    public init(_ text: some StringProtocol) {
        var elements: [Element] = []
        var rest = Array(text.unicodeScalars)[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "*": elements.append(.anyNumber)
            case "?": elements.append(.anyOne)
            case "[":
                if let set = Self.takeSet(&rest) { elements.append(set) } else { elements.append(.one(scalar)) }
            default: elements.append(.one(scalar))
            }
        }
        self.elements = elements
        matchesHidden = text.unicodeScalars.first == "."
    }

    /// Whether a text contains characters of patterns.
    public static func isPattern(_ text: some StringProtocol) -> Bool {
        text.unicodeScalars.contains { $0 == "*" || $0 == "?" || $0 == "[" }
    }

    /// Takes a set without its opening bracket; `nil` if it is not closed.
    private static func takeSet(_ rest: inout ArraySlice<Unicode.Scalar>) -> Element? {
        var set = rest
        let isNegated = set.first == "!"
        if isNegated { set.removeFirst() }
        var ranges: [ClosedRange<Unicode.Scalar>] = []
        while let scalar = set.popFirst() {
            if scalar == "]" && !ranges.isEmpty {
                rest = set
                return .set(ranges, isNegated: isNegated)
            }
            if set.first == "-", let end = set.dropFirst().first, end != "]", end >= scalar {
                ranges.append(scalar...end)
                set.removeFirst(2)
            } else {
                ranges.append(scalar...scalar)
            }
        }
        return nil
    }

    /// Returns whether the whole name matches. A name that begins with a period matches only a pattern that does.
    public func matches(_ name: some StringProtocol) -> Bool {
        let scalars = Array(name.unicodeScalars)
        if scalars.first == "." && !matchesHidden { return false }
        var (element, position) = (0, 0)
        // The last `*`, and the position up to which it matches: extended by one on each mismatch.
        var star: (element: Int, position: Int)?
        while position < scalars.count {
            if element < elements.count, case .anyNumber = elements[element] {
                star = (element, position)
                element += 1
            } else if element < elements.count, Self.matches(elements[element], scalars[position]) {
                element += 1
                position += 1
            } else if let last = star {
                star = (last.element, last.position + 1)
                element = last.element + 1
                position = last.position + 1
            } else {
                return false
            }
        }
        return elements[element...].allSatisfy { if case .anyNumber = $0 { true } else { false } }
    }

    private static func matches(_ element: Element, _ scalar: Unicode.Scalar) -> Bool {
        switch element {
        case .one(let expected): expected == scalar
        case .anyOne: true
        case .anyNumber: false
        case .set(let ranges, let isNegated): ranges.contains { $0.contains(scalar) } != isNegated
        }
    }
}
