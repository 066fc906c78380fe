public import Client
internal import Foundation
internal import Wire

/// The state of a store's last synchronisation, for other processes: a JSON file beside the store, `STORE-sync.json`.
public struct SyncState: Hashable, Sendable {
    /// The identifier of the process that synchronises the store; `nil` if it has stopped.
    public var process: Int?
    /// The belief about connectivity in one word: `unknown`, `online`, `interface-down`, `interface-not-allowed`,
    /// `suspected` or `unreachable`.
    public var connectivity = "unknown"
    /// Failed exchanges in a row, while unreachable.
    public var failures = 0
    /// The time of the last agreement with the server, in the contract's date format; `nil` if there was none.
    public var lastSync: String?
    /// The reason why nothing is sent, or the server is not reached; `nil` if there is none.
    public var problem: String?
    /// The kind of the reason: a value of `SyncProblem.Kind`.
    public var cause: String?
    /// The seconds by which the server's clock is ahead of this device's; 0 if they agree to 2 s.
    public var clockOffset = 0

    /// The problem of the synchronisation; `nil` if there is none.
    public var currentProblem: SyncProblem? {
        guard let problem, let kind = cause.flatMap(SyncProblem.Kind.init) else { return nil }
        return SyncProblem(kind, problem)
    }

    /// The longest file that is read, in bytes.
    private static let bytesMax = 64 << 10

    /// Creates a state.
    init() {}

    /// Reads the state of a store; `nil` if there is none.
    public init?(storePath: String) {
        guard let file = FileHandle(forReadingAtPath: Self.path(of: storePath)),
            let data = try? file.read(upToCount: Self.bytesMax),
            let members = JSONText.parse(data)?.object
        else { return nil }
        try? file.close()
        if case .integer(let number)? = members["process"] { process = Int(clamping: number) }
        if case .integer(let number)? = members["failures"] { failures = Int(clamping: number) }
        connectivity = members["connectivity"]?.text ?? "unknown"
        lastSync = members["last_sync"]?.text
        problem = members["reason"]?.text
        cause = members["cause"]?.text
        if case .integer(let number)? = members["clock_offset_s"] { clockOffset = Int(clamping: number) }
    }

    /// The process that synchronises the store; `nil` if it has ended, in whatever way.
    var runningProcess: Int? {
        guard let process, process > 0, let pid = pid_t(exactly: process) else { return nil }
        // Signal 0 checks only whether the process exists.
        return kill(pid, 0) == 0 || errno == EPERM ? process : nil
    }

    /// The state as JSON.
    public var json: String {
        JSONText.object([
            ("process", process.map { "\($0)" } ?? "null"), ("connectivity", JSONText.string(connectivity)),
            ("failures", "\(failures)"), ("last_sync", JSONText.string(lastSync)),
            ("cause", JSONText.string(cause)), ("reason", JSONText.string(problem)),
            ("clock_offset_s", "\(clockOffset)"),
        ])
    }

    /// Takes over the engine's state.
    mutating func update(_ status: SyncStatus) {
        failures = 0
        switch status.connectivity {
        case .unknown: connectivity = "unknown"
        case .online: connectivity = "online"
        case .interfaceDown: connectivity = "interface-down"
        case .interfaceNotAllowed: connectivity = "interface-not-allowed"
        case .suspected: connectivity = "suspected"
        case .unreachable(let count):
            connectivity = "unreachable"
            failures = count
        }
        problem = status.problem?.reason
        cause = status.problem?.kind.rawValue
    }

    /// Replaces the file. A failure is ignored, because the file is a copy for information.
    func write(storePath: String) {
        let path = Self.path(of: storePath)
        let created = FileManager.default.createFile(
            atPath: path + ".new", contents: Data((json + "\n").utf8), attributes: [.posixPermissions: 0o600])
        if !created || rename(path + ".new", path) != 0 { unlink(path + ".new") }
    }

    private static func path(of store: String) -> String {
        URL(filePath: store).resolvingSymlinksInPath().path(percentEncoded: false) + "-sync.json"
    }
}
