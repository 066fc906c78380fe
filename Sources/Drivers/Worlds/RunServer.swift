public import Client
internal import Determinism
internal import Foundation
internal import NotesContract
public import NotesService
public import Scenario
internal import Synchronization

/// Where the notes of a run's server are. Both have the same responses.
public enum ServerStorage: Hashable, Sendable {
    /// In a SQLite database in memory, as those of a server without a file.
    case sqlite
    /// In collections, which are faster.
    case collections
}

extension Scenario {
    /// Whether a step sends a raw request to a resource other than a note or the list of notes. The server in memory has
    /// these two only, so that such a scenario needs the database.
    fileprivate var needsDatabase: Bool {
        steps.contains { step in
            // Collections have no snapshots.
            if case (_, .server)? = step.action { return true }
            guard case (_, .send(let request))? = step.action else { return false }
            let path = request.path.utf8
            let isPlain = path.allSatisfy { $0 != UInt8(ascii: "%") && $0 != UInt8(ascii: "?") }
            let rest = request.path.dropFirst("/api/notes/".count)
            // The rest is empty, or the identifier of a note; a further segment is a part of the note, such as an attachment.
            let isOfNotes = request.path.hasPrefix("/api/notes/") && rest.dropLast().allSatisfy { $0 != "/" }
            return !isPlain || !isOfNotes
        }
    }
}

extension Scenario {
    /// Whether a live run has the date of simulated ones for the wall clocks of apps and for their services, so that a step of a
    /// clock leads to the same time of the day. Another server and programs have the host's clock; so have the notes and their
    /// clients.
    public var hasOwnDate: Bool { server == .builtIn && !devices.contains { $0.runsProgram } }
}

/// The notes service of a run with the notes of its scenario. Scenario and seed determine all identifiers.
public struct RunServer: Sendable {
    /// The password of every user.
    public static let password = "secret"
    /// The date at the start of a simulated run, and of a live one with its own date: 2026-03-01T00:00:00Z, in milliseconds since
    /// 1970.
    public static let startMilliseconds = 1_772_323_200_000

    /// The greatest size of all texts of generated notes.
    private static let fillBytesMax = 64 << 20

    /// The service.
    public let service: NotesService
    /// The names of the notes at the start, and their identifiers.
    public let names: [(row: String, uuid: String)]
    /// The services of apps.
    private let apps: AppServices
    private let store: NotesStore
    private let users: [String]
    private let hasTokens: Bool
    /// The last backup.
    private let backup = BackupSlot()
    /// The names of the records of apps.
    private let appRecords: Set<String>

    /// Creates the service.
    ///
    /// - Parameters:
    ///   - path: The database; `nil` keeps it in memory.
    ///   - storage: Where the notes are without a path. A scenario with requests past the clients of other resources than
    ///     notes has a database.
    ///   - behavior: The guarantees of the server for writes.
    ///   - now: Returns the wall-clock time in milliseconds since 1970.
    ///   - monotonicNow: Returns the monotonic time in milliseconds.
    public init(
        _ scenario: Scenario, seed: UInt64, path: String? = nil, storage: ServerStorage = .sqlite,
        behavior: NotesService.Behavior = NotesService.Behavior(),
        now: (@Sendable () -> Int)? = nil,
        monotonicNow: (@Sendable () -> Int)? = nil
    ) throws(SetupError) {
        guard let contract = APIContract.named[scenario.contract] else {
            throw SetupError("\(scenario.name): the contract '\(scenario.contract.prefix(40))' does not exist")
        }
        if let fill = scenario.fill,
            fill.notes.multipliedReportingOverflow(by: fill.bytes).overflow
                || fill.notes * fill.bytes > Self.fillBytesMax
        {
            throw SetupError("\(scenario.name): 'fill' has more than \(Self.fillBytesMax >> 20) MiB of text")
        }
        let ids = RandomIdentifiers(seed: seed, "server/ids")
        let notes = RandomIdentifiers(seed: seed, "server/notes")
        let epochs = RandomIdentifiers(seed: seed, "server/epochs")
        users = scenario.users.sorted()
        appRecords = Set(scenario.records.map(\.row))
        var names: [(row: String, uuid: String)] = []
        do {
            if path == nil, storage == .collections, !scenario.needsDatabase {
                store = NotesStore(inCollectionsFor: contract) { epochs.short() }
            } else {
                store = try NotesStore(path: path, contract: contract) { epochs.short() }
            }
            for note in scenario.notes + (scenario.fill?.seedNotes(seed: seed) ?? []) {
                let uuid = notes.uuid()
                names.append((note.row, uuid))
                for user in users {
                    try store.seed(
                        Note(
                            uuid: uuid, revision: Revision(number: note.revision, suffix: notes.uuid()),
                            date: "2026-01-01T00:00:00.000Z", title: note.title, text: note.text), owner: user)
                }
            }
        } catch {
            throw SetupError("\(scenario.name): cannot create the server's notes: \(error)")
        }
        apps = try AppServices(scenario, users: users, names: &names, ids: notes)
        self.names = names
        var limits = NotesService.Limits()
        if let life = scenario.tokenLife { limits.accessSeconds = max(1, Int(life.count / 1_000_000_000)) }
        service = NotesService(
            store: store, users: Dictionary(uniqueKeysWithValues: users.map { ($0, Self.password) }),
            // Clients renew a token after 401, not after 403 (RFC 6750, 3.1).
            unauthenticatedStatus: scenario.tokenLife == nil ? nil : 401, limits: limits, now: now,
            monotonicNow: monotonicNow, makeUUID: { ids.uuid() }, behavior: behavior,
            mounted: apps.mounted(now: now ?? Self.liveClock(scenario)))
        hasTokens = scenario.tokenLife != nil
    }

    /// Returns the clock of apps' services in a live run that starts now.
    private static func liveClock(_ scenario: Scenario) -> @Sendable () -> Int {
        guard scenario.hasOwnDate else { return { Int(Date().timeIntervalSince1970 * 1000) } }
        let origin = ContinuousClock.now
        return { startMilliseconds + Int(Nanoseconds(ContinuousClock.now - origin).count / 1_000_000) }
    }

    /// Returns the tokens with which a device of a user authenticates; `nil` if it sends the password.
    public func signIn(_ user: String) throws(SetupError) -> SyncTokens? {
        guard hasTokens else { return nil }
        do {
            let (access, refresh) = try service.issueTokens(to: user)
            return SyncTokens(access: access, refresh: refresh)
        } catch {
            throw SetupError("cannot sign in the user '\(user.prefix(40))': \(error)")
        }
    }

    /// The push notices of the services; `nil` without a service.
    public var pushNotices: PushNotices? { apps.pushNotices }

    /// Executes an action of a writer that concerns the server itself, or a record of an app's service. Returns whether it
    /// is one; any other action is a request.
    public func execute(
        _ action: Scenario.Action, of user: String, _ recorder: HistoryRecorder
    ) throws(ActionError) -> Bool {
        switch action {
        case .server(.backup):
            do throws(NotesStoreError) {
                let (store, snapshot, restoreApps) = (store, try store.snapshot(), apps.backup())
                backup.set {
                    try store.restore(snapshot)
                    restoreApps()
                }
            } catch {
                throw ActionError(error.description)
            }
            return true
        case .server(.restore):
            guard let restore = backup.value else { throw ActionError("the server has no backup") }
            do {
                try restore()
            } catch {
                throw ActionError("\(error)")
            }
            return true
        case .edit(let row, _, _), .delete(let row):
            guard appRecords.contains(row), let key = recorder.record(of: row) else { return false }
            let content = action.writtenContent
            let isChanged = apps.change(
                String(decoding: key, as: UTF8.self), title: content?.title, text: content?.text, owner: user)
            guard isChanged else { throw ActionError("the service cannot make this change of \(row)") }
            return true
        default: return false
        }
    }

    /// Returns the notes of all users by their names in the scenario.
    public func rows(_ recorder: HistoryRecorder) throws(NotesStoreError) -> [History.ServerRow] {
        var rows: [History.ServerRow] = []
        for user in users {
            for record in apps.records(of: user) {
                rows.append(
                    History.ServerRow(
                        user: user, name: recorder.name(of: Array(record.key.utf8)), revision: record.revision,
                        title: record.title, text: record.text))
            }
            for note in try store.notes(of: user) {
                rows.append(
                    History.ServerRow(
                        user: user, name: recorder.name(of: Array(note.uuid.utf8)), revision: note.revision.number,
                        title: note.title, text: note.text))
            }
        }
        return rows
    }
}

/// The backup of a run's server.
private final class BackupSlot: Sendable {
    private let restore = Mutex<(@Sendable () throws -> Void)?>(nil)

    /// The restoration of the backup; `nil` if there is none.
    var value: (@Sendable () throws -> Void)? { restore.withLock { $0 } }

    func set(_ restore: @escaping @Sendable () throws -> Void) { self.restore.withLock { $0 = restore } }
}

extension Scenario.Action {
    /// The title and the text of an edit; `nil` for a deletion.
    fileprivate var writtenContent: (title: String?, text: String?)? {
        if case .edit(_, let title, let text) = self { (title, text) } else { nil }
    }
}
