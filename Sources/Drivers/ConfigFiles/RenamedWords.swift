/// The words of files, commands and the control API that have been renamed.
///
/// A renamed word is not accepted: its error names the new one. Every reader looks words up here, and
/// ``FileMigration`` rewrites files by the same table.
public enum RenamedWords {
    /// The new words by the old one. An old word with several meanings has several new words; the place at which it
    /// is found decides.
    static let table: [String: [String]] = [
        // Points of an exchange.
        "queued": ["before-request"], "partly-sent": ["mid-request"], "received": ["before-request-end"],
        "committed": ["before-response"], "answer-started": ["after-response-head"],
        "partly-answered": ["mid-response"], "answered": ["after-response"],
        // Actions of faults.
        "cut": ["reset"], "mute": ["stall"], "hold": ["delay"], "trickle": ["throttle"], "reply": ["respond"],
        "answer": ["respond"],
        // Phases, the end of an outage, and the end of connections.
        "heal": ["restore", "end-outage"], "reset": ["disconnect"], "prove": ["check"],
        // Conditions and interfaces.
        "refuse": ["offline"], "updead": ["uplink-loss"], "downdead": ["downlink-loss"], "cell": ["cellular"],
        "wlan": ["wifi", "unmetered"],
        // Clients and commands.
        "pattern": ["expense"], "selftest": ["mutation-test"],
        // Keys.
        "chance": ["probability"], "answers": ["responses"], "over": ["notes"],
    ]

    /// The new options of commands by the old ones.
    private static let options = [
        "--levers": "--test-hooks", "--lean": "--bias", "--gallery": "--all-mutants",
    ]

    /// Returns the new name of a renamed option; `nil` if the argument is none.
    public static func newOption(for argument: String) -> String? {
        guard argument.utf8.count <= wordBytesMax else { return nil }
        return options[String(argument.prefix { $0 != "=" })]
    }

    /// Returns the new word for a renamed one, of those that are possible; `nil` if the word is not a renamed one.
    public static func newWord(for word: String, among candidates: some Collection<String>) -> String? {
        // A long text is no renamed word, and its comparison may take long.
        guard word.utf8.count <= wordBytesMax else { return nil }
        return table[word]?.first { candidates.contains($0) }
    }

    private static let wordBytesMax = 64

    /// Returns `; 'mute' is now called 'stall'`; `nil` if the word is not a renamed one.
    public static func hint(_ word: String, in candidates: some Collection<String>) -> String? {
        newWord(for: word, among: candidates).map { "; '\(word)' is now called '\($0)'" }
    }
}
