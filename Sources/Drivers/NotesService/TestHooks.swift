public import HTTPTypes
internal import Synchronization

/// Faults and state that tests set in a running server: responses held or dropped after the write, forced responses, a
/// fixed clock, snapshots of the database. They are for servers on a loopback address only.
public final class TestHooks: Sendable {
    /// The effect of a rule on a request.
    public enum Action: Sendable {
        /// The request is executed, and its response held until ``TestHooks/release(_:)``.
        case hold
        /// The request is executed, and the connection closed without a response.
        case drop
        /// The request is not executed; this response is sent, with the header fields in the given order.
        case respond(status: Int, headers: HTTPFields, body: String)
    }

    /// A rule: the requests that it matches, and the effect on them.
    public struct Rule: Sendable {
        /// The method; `nil` matches any.
        public var method: String?
        /// The path without the query; a final `*` matches any suffix.
        public var path: String
        /// The number of the matching request, from 1; `nil` matches all.
        public var nth: Int?
        /// The effect.
        public var action: Action

        /// Creates a rule.
        public init(method: String?, path: String, nth: Int?, action: Action) {
            self.method = method
            self.path = path
            self.nth = nth
            self.action = action
        }

        func matches(_ method: String, _ path: String) -> Bool {
            if let own = self.method, own != method { return false }
            return self.path.hasSuffix("*") ? path.hasPrefix(self.path.dropLast()) : path == self.path
        }
    }

    /// A rule and its counts.
    struct Entry {
        let id: Int
        let rule: Rule
        var matchedRequests = 0
        var affectedRequests = 0
        /// The barriers of held responses.
        var barriers: [ResponseBarrier] = []
    }

    private struct State {
        var lastID = 0
        var entries: [Entry] = []
        var fixedTime: Int?
        var snapshots: [Int: NotesSnapshot] = [:]
    }

    /// The maximum number of rules, and the maximum number of snapshots.
    static let entriesMax = 100

    private let state = Mutex(State())

    /// Creates hooks without any effect.
    public init() {}

    /// The fixed time of the server in milliseconds since 1970; `nil` if the server uses the system's clock.
    public var fixedTime: Int? {
        get { state.withLock { $0.fixedTime } }
        set { state.withLock { $0.fixedTime = newValue } }
    }

    /// Adds a rule and returns its number; `nil` if there are too many. A request is affected by the first rule that
    /// matches it with the right ``Rule/nth``.
    @discardableResult
    public func add(_ rule: Rule) -> Int? {
        state.withLock { state in
            guard state.entries.count < TestHooks.entriesMax else { return nil }
            state.lastID += 1
            state.entries.append(Entry(id: state.lastID, rule: rule))
            return state.lastID
        }
    }

    /// Releases the held responses of a rule and returns their number; `nil` for an unknown rule.
    @discardableResult
    public func release(_ id: Int) -> Int? {
        takeBarriers(id, removesRule: false).map { barriers in
            for barrier in barriers { barrier.release() }
            return barriers.count
        }
    }

    /// Removes a rule and releases its held responses. Returns whether the rule existed.
    @discardableResult
    public func remove(_ id: Int) -> Bool {
        guard let barriers = takeBarriers(id, removesRule: true) else { return false }
        for barrier in barriers { barrier.release() }
        return true
    }

    /// Removes all rules and snapshots, releases all held responses and restores the system's clock.
    public func reset() {
        let barriers = state.withLock { state in
            defer {
                state.entries = []
                state.fixedTime = nil
                state.snapshots = [:]
            }
            return state.entries.flatMap(\.barriers)
        }
        for barrier in barriers { barrier.release() }
    }

    private func takeBarriers(_ id: Int, removesRule: Bool) -> [ResponseBarrier]? {
        state.withLock { state in
            guard let index = state.entries.firstIndex(where: { $0.id == id }) else { return nil }
            let barriers = state.entries[index].barriers
            state.entries[index].barriers = []
            if removesRule { state.entries.remove(at: index) }
            return barriers
        }
    }

    var entries: [Entry] { state.withLock { $0.entries } }

    // MARK: Snapshots

    func addSnapshot(_ snapshot: NotesSnapshot) -> Int? {
        state.withLock { state in
            guard state.snapshots.count < TestHooks.entriesMax else { return nil }
            state.lastID += 1
            state.snapshots[state.lastID] = snapshot
            return state.lastID
        }
    }

    func snapshot(_ id: Int) -> NotesSnapshot? { state.withLock { $0.snapshots[id] } }

    func removeSnapshot(_ id: Int) { state.withLock { $0.snapshots[id] = nil } }

    var snapshotIDs: [Int] { state.withLock { $0.snapshots.keys.sorted() } }

    // MARK: Requests

    /// The effect on one request.
    enum Effect {
        case hold(ResponseBarrier)
        case drop
        case respond(NotesService.Response)
    }

    /// Records a request and returns the effect on it, if any.
    func recordRequest(method: String, path: String) -> Effect? {
        state.withLock { state in
            for index in state.entries.indices where state.entries[index].rule.matches(method, path) {
                state.entries[index].matchedRequests += 1
                let entry = state.entries[index]
                guard entry.rule.nth == nil || entry.rule.nth == entry.matchedRequests else { continue }
                state.entries[index].affectedRequests += 1
                switch entry.rule.action {
                case .hold:
                    let barrier = ResponseBarrier()
                    state.entries[index].barriers.append(barrier)
                    return .hold(barrier)
                case .drop: return .drop
                case .respond(let status, let headers, let body):
                    var response = NotesService.Response(.init(code: status), .text(body))
                    response.head.headerFields = headers
                    return .respond(response)
                }
            }
            return nil
        }
    }
}

/// The barrier of a held response.
public final class ResponseBarrier: Sendable {
    private struct State {
        var isReleased = false
        var callbacks: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    func release() {
        let callbacks = state.withLock { state in
            state.isReleased = true
            defer { state.callbacks = [] }
            return state.callbacks
        }
        for callback in callbacks { callback() }
    }

    /// Calls `callback` when the barrier is released, or at once if it has been.
    public func onRelease(_ callback: @escaping @Sendable () -> Void) {
        let isReleased = state.withLock { state in
            if !state.isReleased { state.callbacks.append(callback) }
            return state.isReleased
        }
        if isReleased { callback() }
    }
}
