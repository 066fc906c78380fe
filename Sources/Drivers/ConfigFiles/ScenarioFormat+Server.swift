internal import Determinism
internal import Scenario
internal import Yams

/// The server and its data at the start.
extension ScenarioFormat {
    static let data: [Object] = [server.object, note.object, record.object, fill.object, tls.object]

    static let server = FormatMapping<Scenario>(
        "server", "'server'",
        [
            .key(
                "contract", \.contract, .choice(["compat", "orig", "strict"]), default: "compat",
                "The API contract of the notes server."),
            .optional(
                "token-life", \.tokenLife, .time, default: "no tokens",
                "Devices authenticate with access tokens of this lifetime, at least 1 s, and renew them. Without it they "
                    + "send passwords. Not with `orig`."),
            .key(
                "notes", \.notes, .notes, default: [], as: nil,
                "Notes at the start, by their names in the scenario."),
            .key(
                "records", \.records, .records, default: [], as: nil,
                "Records of an app's service at the start, by their names in the scenario; a record comes before those "
                    + "in it. With a client that is an [app](../explanation/patterns.md)."),
            .optional("fill", \.fill, .object(fill), "Generated notes at the start, called f1, f2 and so on."),
            .part(
                "run", .program, "A program with its arguments, in place of the built-in server.",
                get: { if case .run(let program, _) = $0.server { program } else { nil } },
                set: { $0.server = .run($1, ready: nil) }),
            .part(
                "ready", FormatCodec(.text, read: { $1.readiness($0) }, write: { .text($0) }),
                default: "the port accepts connections",
                "With `run`: the path of a resource, or a URL with a port, that the server serves once it is ready.",
                get: { if case .run(_, let ready) = $0.server { ready } else { nil } },
                set: { if case .run(let program, _) = $0.server { $0.server = .run(program, ready: $1) } }),
            .part(
                "url", .text,
                "The URL of a server, in place of the built-in server. `https://` for servers of this machine only.",
                get: { if case .url(let url) = $0.server { url } else { nil } },
                set: { if $0.server == .builtIn { $0.server = .url($1) } }),
            .optional(
                "tls", \.tls, .object(tls), default: "with `url: https://...` the authorities of the system",
                "The server of `run` or `url` speaks [TLS](adapter.md#a-server-with-tls), inside of which the faults act."
            ),
        ], blank: { _ in Scenario(name: "") }, check: { $1.reader.checkServer($0, $1) })

    static let note = FormatMapping<Scenario.SeedNote>(
        "note", "a note",
        [
            .optional("title", \.title, .text, default: "none", "The title."),
            .optional("text", \.text, .text, default: "none", "The text."),
            .key("revision", \.revision, .integer(1...numberMax), default: 1, "The number of the revision."),
        ], blank: { _ in Scenario.SeedNote(row: "", title: nil, text: nil, revision: 1) })

    static let record = FormatMapping<Scenario.SeedRecord>(
        "record", "a record",
        [
            .required(
                "kind", \.kind, .choice(Scenario.App.allCases.flatMap { $0.vocabulary.kinds.map(\.name) }),
                "The kind of record."),
            .optional(
                "in", \.parent, .word(.name(.row)) { $1.text($0) },
                "The record that contains it, such as the report of an expense."),
            .optional("title", \.title, .text, default: "none", "The title."),
            .optional(
                "text", \.text, .text, default: "none", "The text, such as the amount of an expense, `12.00`."),
            .key(
                "approved", \.isApproved, .boolean, default: false,
                "Whether an expense is approved, so that it cannot be deleted."),
            .key(
                "with", \.fields, .arguments, default: [], as: "none", "Further fields, which depend on the kind."),
        ], blank: { _ in Scenario.SeedRecord(row: "", kind: "") })

    private static let tls = FormatMapping<Scenario.ServerTLS>(
        "tls", "'tls'",
        [
            .optional(
                "ca", \.authorities, .text, default: "those of the system",
                "The file with the authorities that certify the server, in PEM form. A relative path begins at the folder of "
                    + "the file."),
            .key("insecure", \.isInsecure, .boolean, default: false, "Whether any certificate is accepted."),
        ], blank: { _ in Scenario.ServerTLS() }, check: { $1.reader.checkTLS(&$0, $1) })

    private static let fill = FormatMapping<Scenario.Fill>(
        "fill", "'fill'",
        [
            .required("notes", \.notes, .integer(1...10_000), "The number of notes."),
            .key(
                "bytes", \.bytes, .size, default: 100, "The size of each text: a number of bytes, or `2KB`."),
        ], blank: { _ in Scenario.Fill(notes: 0, bytes: 100) })
}

extension FormatCodec where Value == [Scenario.SeedNote] {
    fileprivate static var notes: Self {
        Self(
            .map(.newRow, .object("note")), read: { $1.notes($0) },
            write: { notes in
                .mapping(
                    notes.map { ScenarioWriter.entry($0.row, ScenarioFormat.note.tree($0)) }, isFlow: false)
            })
    }
}

extension FormatCodec where Value == [Scenario.SeedRecord] {
    fileprivate static var records: Self {
        Self(
            .map(.newRow, .object("record")), read: { $1.records($0) },
            write: { records in
                .mapping(
                    records.map { ScenarioWriter.entry($0.row, ScenarioFormat.record.tree($0)) }, isFlow: false)
            })
    }
}
