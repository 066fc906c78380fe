/// The part of a representation that the header field `Range` selects (RFC 9110, 14.2).
enum ByteRange: Equatable {
    /// The whole representation: the field is absent, malformed, of another unit, or names several ranges.
    case whole
    case part(Range<Int>)
    /// No byte of the range exists: 416.
    case unsatisfiable

    init(field: String?, length: Int) {
        self = .whole
        guard let field, let equals = field.firstIndex(of: "="), field[..<equals].lowercased() == "bytes" else {
            return
        }
        let bounds = field[field.index(after: equals)...].split(separator: "-", omittingEmptySubsequences: false).map {
            $0.drop { $0 == " " }
        }
        guard bounds.count == 2, bounds.allSatisfy({ $0.utf8.allSatisfy { (48...57).contains($0) } }) else { return }
        // A number that does not fit is beyond the end of any representation.
        func number(_ text: Substring) -> Int { Int(text) ?? .max }
        let last = number(bounds[1])
        if bounds[0].isEmpty {
            guard !bounds[1].isEmpty else { return }
            self = last == 0 || length == 0 ? .unsatisfiable : .part(max(0, length - last)..<length)
        } else {
            let first = number(bounds[0])
            guard bounds[1].isEmpty || first <= last else { return }
            guard first < length else {
                self = .unsatisfiable
                return
            }
            self = .part(first..<(bounds[1].isEmpty ? length : min(last, length - 1) + 1))
        }
    }
}
