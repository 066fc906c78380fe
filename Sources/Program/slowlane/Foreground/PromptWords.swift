internal import ConfigFiles

/// The words that Tab completes at the prompt of `slowlane proxy`: commands, profiles, timelines and directions.
enum PromptWords {
    /// Returns the words that can stand at the end of a text, in place of its last word.
    static func following(_ text: String) -> [String] {
        let words = text.split(omittingEmptySubsequences: false, whereSeparator: \.isWhitespace).drop { $0.isEmpty }
        guard let command = words.first, words.count > 1 else { return InteractiveProxy.commandNames }
        guard words.dropFirst().dropLast().allSatisfy(\.isEmpty) else { return [] }
        switch command.lowercased() {
        case "profile": return (ProfileCatalogue.profileNames + ProfileCatalogue.aliases.keys).sorted()
        case "timeline": return ProfileCatalogue.timelineNames
        case "outage": return ["up", "down"]
        case "fault": return ["remove"]
        default: return []
        }
    }
}
