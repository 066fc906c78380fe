extension Character {
    /// Ranges of wide characters (East Asian Width W and F of Unicode Standard Annex 11, without the rarest blocks).
    private static let wideRanges: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3, 0xF900...0xFAFF,
        0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x17000...0x18AFF, 0x1B000...0x1B2FF, 0x20000...0x3FFFD,
    ]

    /// The number of columns that the character takes on a terminal: 0 for a lone mark, 2 for wide characters.
    var terminalWidth: Int {
        guard let scalar = unicodeScalars.first else { return 0 }
        if scalar.value < 0x300 { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        // U+FE0F asks for the presentation as an emoji.
        let isEmoji = scalar.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}")
        return isEmoji || Self.wideRanges.contains { $0.contains(scalar.value) } ? 2 : 1
    }
}

extension String {
    /// The number of columns that the text takes on a terminal.
    package var terminalWidth: Int { reduce(0) { $0 + $1.terminalWidth } }

    /// Returns the beginning of the text that takes a number of columns at most.
    package func prefix(columns: Int) -> Substring {
        var rest = columns
        return prefix { character in
            rest -= character.terminalWidth
            return rest >= 0
        }
    }
}
