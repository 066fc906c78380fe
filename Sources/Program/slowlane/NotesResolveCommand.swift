internal import ArgumentParser
internal import Client
internal import CommandSupport
internal import Foundation
internal import LiveClient

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension NotesCommand {
    /// `slowlane notes resolve`.
    struct Resolve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Resolve a conflict: keep a version, or write a new one.",
            discussion: """
                Without a resolution, the command shows both versions beside each other. --edit opens both versions in \
                $VISUAL, $EDITOR or vi, between conflict markers. The edited file is refused while it has a marker.

                Examples:
                  slowlane notes resolve Milk
                  slowlane notes resolve Milk --theirs
                  slowlane notes resolve Milk --text '3 l, oat'
                  slowlane notes resolve Milk --edit
                  slowlane notes resolve --all --policy lines
                """)
        @Argument(help: "Title or uuid of the note.") var note: String?
        @Flag(help: "Resolve all conflicts by --policy; prints those that it leaves open.") var all = false
        @Option(
            help: ArgumentHelp(
                "With --all: latest (later date), fields (merge title and text), lines (merge lines, too), mine or theirs.",
                valueName: "policy"))
        var policy: ResolutionPolicies?
        @Flag(help: "Keep the local version.") var mine = false
        @Flag(help: "Keep the server's version.") var theirs = false
        @Flag(help: "Edit both versions in $VISUAL, $EDITOR or vi.") var edit = false
        @Option(help: "New title, instead of both versions.") var title: String?
        @Option(help: "New text, instead of both versions.") var text: String?
        @OptionGroup var options: StoreOption

        func validate() throws {
            guard (note == nil) == all else { throw ValidationError("give a NOTE, or --all with --policy") }
            guard all == (policy != nil) else { throw ValidationError("give --all and --policy together") }
            if all, mine || theirs || edit || title != nil || text != nil {
                throw ValidationError("give --all with --policy only")
            }
            guard [mine, theirs, edit, title != nil || text != nil].count(where: { $0 }) <= 1 else {
                throw ValidationError("give --mine, --theirs, --edit, or a new --text or --title")
            }
        }

        func run() async throws {
            let console = Console()
            guard let note else { return try resolveAll(console) }
            let isReading = !mine && !theirs && !edit && title == nil && text == nil
            var notes = try isReading ? options.read(console) : options.open(console)
            let uuid = try NotesCommand.perform(console) { try notes.find(note) }
            guard let record = notes.record(uuid), let seen = record.theirs else {
                throw NotesCommand.exitCode(for: OfflineNotes.NoteError(.notInConflict), console)
            }
            let mineContent = record.isDeleted ? nil : NoteContent(record.mine)
            let theirsContent = seen.content.map(NoteContent.init)
            let resolution: OfflineNotes.Resolution
            if mine {
                resolution = .mine
            } else if theirs {
                resolution = .theirs
            } else if title != nil || text != nil {
                resolution = .write(title: title, text: text)
            } else {
                for line in NotesCommand.sideBySide(mineContent, theirsContent, seen.revision) { console.print(line) }
                guard edit else {
                    console.error("nothing was changed; give --mine, --theirs, --text, --title or --edit")
                    throw ExitStatus.usage
                }
                return try resolveInEditor(&notes, uuid, mineContent, theirsContent, seen, console)
            }
            try NotesCommand.perform(console) { try notes.resolve(uuid, resolution, seen: seen) }
        }

        private func resolveAll(_ console: Console) throws {
            guard let policy else { return }
            var notes = try options.open(console)
            let result = try NotesCommand.perform(console) { try notes.resolveAll(by: policy.conflictPolicy) }
            console.print("\(TextTable.count(result.resolved.count, "conflict")) resolved, \(result.open.count) open")
            for uuid in result.open {
                console.print("open: \(NotesText.short(uuid)) \(TextTable.singleLine(notes.row(uuid)?.title))")
            }
            if !result.open.isEmpty { throw ExitStatus.failed }
        }

        private func resolveInEditor(
            _ notes: inout OfflineNotes, _ uuid: String, _ mine: NoteContent?, _ theirs: NoteContent?,
            _ seen: LocalRecord.Theirs, _ console: Console
        ) throws {
            func version(_ content: NoteContent?) -> ConflictText.Version? {
                content.map { ConflictText.Version(title: $0.title ?? "", text: $0.text ?? "") }
            }
            let file = ConflictText(mine: version(mine), theirs: version(theirs))
            let path = FileManager.default.temporaryDirectory
                .appendingPathComponent("slowlane-note-\(UUID().uuidString.prefix(8)).txt").path
            guard
                FileManager.default.createFile(
                    atPath: path, contents: Data(file.contents.utf8), attributes: [.posixPermissions: 0o600])
            else {
                console.error("cannot write \(path): no space or no permission; set TMPDIR to another folder")
                throw ExitStatus.unavailable
            }
            let variables = ProcessInfo.processInfo.environment
            let editor = [variables["VISUAL"], variables["EDITOR"]].compactMap(\.self).first { !$0.isEmpty } ?? "vi"
            // The path reaches the shell as a variable, so that it needs no quotation.
            setenv("SLOWLANE_CONFLICT_FILE", path, 1)
            let status = system("\(editor) \"$SLOWLANE_CONFLICT_FILE\"")
            guard status == 0 else {
                try? FileManager.default.removeItem(atPath: path)
                console.error("the editor '\(editor)' failed; nothing was changed; set EDITOR to another one")
                throw ExitStatus.failed
            }
            let edited: ConflictText.Version
            do {
                let data = try Data(contentsOf: URL(filePath: path))
                guard let text = String(validating: data, as: UTF8.self) else {
                    throw ConflictText.ParseError(line: nil, reason: "the text is not UTF-8")
                }
                edited = try file.parse(text)
            } catch {
                console.error("\(path): \(error); nothing was changed, and the file is kept")
                throw ExitStatus.invalidFile
            }
            do {
                try notes.resolve(uuid, .write(title: edited.title, text: edited.text), seen: seen)
            } catch {
                let code = NotesCommand.exitCode(for: error, console)
                console.print("the edited text is kept in \(path)", to: .progress)
                throw code
            }
            try? FileManager.default.removeItem(atPath: path)
        }
    }
}
