extension AppVocabulary {
    /// The words of the field app.
    public static let field = AppVocabulary(
        title: "field app", actions: ["create", "edit", "pin", "open", "sync", "call"] + AppVocabulary.deviceActions,
        calls: [
            // Adds a note to an issue.
            Call("note", [recordArgument, "text"], needsArguments: true),
            // Adds a note that resolves an issue.
            .ofRecord("resolve"),
            // Dismisses a record that the server has rejected.
            .ofRecord("dismiss"),
            // Downloads a file now.
            .ofRecord("fetch"),
            // Repeats what has failed on the open screen: the download of a file, or the pull.
            Call("retry"),
            // Takes back the pin of a file.
            .ofRecord("unpin"),
            // Sets the language of the device.
            Call("language", ["language"], needsArguments: true),
        ],
        kinds: [
            RecordKind("project", fields: ["titles"]), RecordKind("activity", in: "project", fields: ["titles"]),
            RecordKind("topic", in: "activity", fields: ["titles"]),
            RecordKind("question", rootOr: ["topic"], fields: ["choices", "titles"]),
            RecordKind("issue", rootOr: ["topic"], fields: ["titles"]),
            RecordKind(
                "file", rootOr: ["project", "activity", "topic", "question", "issue"], fields: ["bytes", "titles"]),
            RecordKind("schedule", fields: ["period", "grace", "zone", "zone-changes"]),
        ],
        settings: [
            Setting("network", .words(["unmetered", "any"])), Setting("events", .words(["on", "off"])),
            Setting("window", .time), Setting("every", .time), Setting("quota", .size),
        ],
        screens: ["list", "loading", "no-wifi", "failed", "sign-in"],
        recordScreen: "a section, a question, an issue or a file",
        controls: ["add", "back", "edit", "note", "open", "pin", "resolve", "retry", "sync", "unpin"],
        ownMethods: ["GET", "PUT"], habits: [.otherTransfersFirst, .restoresRecord])
}
