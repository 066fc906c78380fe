extension AppVocabulary {
    /// The words of the expense app.
    public static let expense = AppVocabulary(
        title: "expense app",
        actions: ["create", "edit", "delete", "pin", "open", "sync", "call"] + AppVocabulary.deviceActions,
        calls: [
            // Opens the form for a transfer of money.
            Call("transfer"),
            // Opens the page with the balance.
            Call("balance"),
            // Opens the form that searches expenses.
            Call("search"),
            // Opens the page that orders a statement.
            Call("statement"),
            // Opens the page about the app.
            Call("about"),
            // Fills in inputs of the open form.
            Call("fill", ["amount", "memo", "to", "title"]),
            // Submits the open form.
            Call("submit"),
            // Reads the open page again.
            Call("retry"),
            // Dismisses the error of a record.
            .ofRecord("dismiss"),
            // Takes back the pin of a chat.
            .ofRecord("unpin"),
        ],
        kinds: [RecordKind("report"), RecordKind("expense", in: "report"), RecordKind("chat")],
        screens: ["list", "transfer", "search", "balance", "statement", "about"], recordScreen: "a report",
        controls: [
            "about", "add", "back", "balance", "delete", "dismiss", "edit", "fill", "open", "pin", "retry", "search",
            "statement", "submit", "transfer",
        ],
        dialogs: ["sending", "unknown-result"], toasts: ["sent"],
        habits: [.severalLists, .marksChanges])
}
