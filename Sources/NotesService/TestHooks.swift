internal import HTTPTypes
internal import JSON
internal import NotesContract
internal import Synchronization

/// What tests move in a server from outside: answers that are held or lost after their write, statuses out of the blue,
/// a clock that stands still, and everything back as it was. Never for a server that others reach.
public final class TestHooks: Sendable {
    /// What happens to a request.
    public enum Action: Sendable {
        /// It is done, and its answer held until somebody releases it.
        case hold
        /// It is done, and the connection closed instead of answered.
        case drop
        /// It is not done; this is the answer.
        case response(status: Int, headers: [String: String], body: String)
    }

    /// Which request, and what happens to it.
    public struct Rule: Sendable {
        /// The method; `nil` is any.
        public var method: String?
        /// The path without query; with a `*` at its end, how it begins.
        public var path: String
        /// The how-manieth that fits, from 1; `nil` is every one.
        public var nth: Int?
        /// What happens.
        public var action: Action

        /// Creates a rule.
        public init(method: String?, path: String, nth: Int?, action: Action) {
            self.method = method
            self.path = path
            self.nth = nth
            self.action = action
        }

        func matches(_ method: String, _ path: String) -> Bool {
            if let wanted = self.method, wanted != method { return false }
            return self.path.hasSuffix("*") ? path.hasPrefix(self.path.dropLast()) : path == self.path
        }
    }

    struct Entry {
        let id: Int
        let rule: Rule
        var seen = 0
        var fired = 0
        var barriers: [ResponseBarrier] = []
    }

    private struct State {
        var lastID = 0
        var entries: [Entry] = []
        var clock: Int?
        var snapshots: [Int: NotesSnapshot] = [:]
    }

    /// How many rules and how many snapshots there may be.
    static let entriesMax = 100

    private let state = Mutex(State())

    /// None moved.
    public init() {}

    /// Milliseconds since 1970, whatever the clock says; `nil` is the clock.
    public var clock: Int? {
        get { state.withLock { $0.clock } }
        set { state.withLock { $0.clock = newValue } }
    }

    /// Adds a rule and gives its number; `nil` if there are too many. The first that fits a request has it.
    @discardableResult
    public func add(_ rule: Rule) -> Int? {
        state.withLock { state in
            guard state.entries.count < TestHooks.entriesMax else { return nil }
            state.lastID += 1
            state.entries.append(Entry(id: state.lastID, rule: rule))
            return state.lastID
        }
    }

    /// Lets the held answers of a rule go; gives how many, or `nil` if there is no such rule.
    @discardableResult
    public func release(_ id: Int) -> Int? {
        take(id, removing: false).map { barriers in
            for barrier in barriers { barrier.release() }
            return barriers.count
        }
    }

    /// Removes a rule, and lets its held answers go.
    @discardableResult
    public func remove(_ id: Int) -> Bool {
        guard let barriers = take(id, removing: true) else { return false }
        for barrier in barriers { barrier.release() }
        return true
    }

    /// All back: no rules, no fixed clock, no snapshots.
    public func clear() {
        let barriers = state.withLock { state in
            defer {
                state.entries = []
                state.clock = nil
                state.snapshots = [:]
            }
            return state.entries.flatMap(\.barriers)
        }
        for barrier in barriers { barrier.release() }
    }

    private func take(_ id: Int, removing: Bool) -> [ResponseBarrier]? {
        state.withLock { state in
            guard let index = state.entries.firstIndex(where: { $0.id == id }) else { return nil }
            let barriers = state.entries[index].barriers
            state.entries[index].barriers = []
            if removing { state.entries.remove(at: index) }
            return barriers
        }
    }

    var entries: [Entry] { state.withLock { $0.entries } }

    func keep(_ snapshot: NotesSnapshot) -> Int? {
        state.withLock { state in
            guard state.snapshots.count < TestHooks.entriesMax else { return nil }
            state.lastID += 1
            state.snapshots[state.lastID] = snapshot
            return state.lastID
        }
    }

    func snapshot(_ id: Int) -> NotesSnapshot? { state.withLock { $0.snapshots[id] } }

    func forget(_ id: Int) -> Bool { state.withLock { $0.snapshots.removeValue(forKey: id) != nil } }

    var snapshotIDs: [Int] { state.withLock { $0.snapshots.keys.sorted() } }

    enum Outcome {
        case hold(ResponseBarrier)
        case drop
        case response(NotesService.Response)
    }

    /// What happens to this request, if anything.
    func outcome(method: String, path: String) -> Outcome? {
        state.withLock { state in
            for index in state.entries.indices where state.entries[index].rule.matches(method, path) {
                state.entries[index].seen += 1
                let entry = state.entries[index]
                guard entry.rule.nth == nil || entry.rule.nth == entry.seen else { continue }
                state.entries[index].fired += 1
                switch entry.rule.action {
                case .hold:
                    let barrier = ResponseBarrier()
                    state.entries[index].barriers.append(barrier)
                    return .hold(barrier)
                case .drop: return .drop
                case .response(let status, let headers, let body):
                    var response = NotesService.Response(.init(code: status), .text(body))
                    for (name, value) in headers {
                        if let name = HTTPField.Name(name) { response[name] = value }
                    }
                    return .response(response)
                }
            }
            return nil
        }
    }
}

/// What holds an answer back.
public final class ResponseBarrier: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    /// Lets it go.
    func release() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for wake in waiting { wake() }
    }

    /// Calls `wake` once it is released, or at once if it has been.
    public func onRelease(_ wake: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            if !state.isOpen { state.waiting.append(wake) }
            return state.isOpen
        }
        if isOpen { wake() }
    }
}
