extension AppVocabulary {
    /// The words of the network-first reader.
    public static let reader = AppVocabulary(
        title: "reader", actions: ["open", "sync", "call"] + AppVocabulary.deviceActions,
        calls: [
            // Likes an article, or takes that back.
            .ofRecord("like"),
            .ofRecord("unlike"),
            // Gets a recommendation for the list of articles.
            Call("recommend"),
            // Opens a form.
            Call("feedback"),
            Call("sign-up"),
            // Fills in inputs of the open form.
            Call("fill", ["contact", "message", "name", "password"]),
            // Submits the open form.
            Call("submit"),
            // Reads the open page again after an error, or sends a form that has failed.
            Call("retry"),
            // Discards a form that has failed, or has it sent when there is a connection.
            Call("cancel"),
            Call("later"),
            // Closes the dialog about a like.
            Call("close"),
        ],
        kinds: [
            RecordKind("profile", fields: ["birthday", "picture"]), RecordKind("article", in: "profile"),
        ],
        settings: [Setting("data-saver", .words(["on", "off"])), Setting("life", .time)],
        screens: ["list", "feedback", "sign-up", "welcome"], recordScreen: "an article or a profile",
        controls: [
            "back", "cancel", "close", "feedback", "fill", "later", "like", "open", "recommend", "retry", "sign-up",
            "submit",
        ],
        dialogs: ["not-saved", "not-sent", "sending"],
        toasts: [
            "cannot-load", "cannot-save", "no-connection", "not-allowed", "not-found", "not-responding",
            "received-data",
            "sent", "sent-later", "sign-in",
        ],
        showsAllRecords: false, habits: [.severalLists, .readsOnRequest])
}
