internal import NIOCore
internal import Synchronization

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The slot of one open connection, with the state by which connections are chosen for eviction.
final class ConnectionSlot: Sendable {
    /// Whether a request on this connection has authenticated.
    let isAuthenticated = Atomic(false)
    /// Whether a request is being handled.
    let isBusy = Atomic(false)
    /// The time of the last progress in nanoseconds of the event loop's clock: the connection opened, a complete head
    /// arrived, or part of a response was written. An incomplete head is not progress.
    let lastProgress = Atomic(UInt64(0))
    fileprivate let channel: any Channel

    init(_ channel: any Channel) {
        self.channel = channel
        recordProgress()
    }

    func recordProgress() { lastProgress.store(NIODeadline.now().uptimeNanoseconds, ordering: .relaxed) }

    /// Aborts the connection (RST), so that the kernel drops unread bytes at once.
    func abort() { channel.abort() }
}

/// The open connections of a server, at most ``max`` of them.
final class ConnectionTable: Sendable {
    private struct State {
        var slots: [ObjectIdentifier: ConnectionSlot] = [:]
        var isClosed = false
    }

    private let max: Int
    private let state = Mutex(State())

    init(max: Int) { self.max = max }

    /// The number of open connections.
    var count: Int { state.withLock { $0.slots.count } }

    /// Admits a connection and, if all slots are taken, evicts another. Returns whether the connection was admitted.
    func admit(_ slot: ConnectionSlot) -> Bool {
        let (isAdmitted, evicted) = state.withLock { state -> (Bool, ConnectionSlot?) in
            if state.isClosed { return (false, nil) }
            var evicted: ConnectionSlot?
            if state.slots.count >= max {
                evicted = Self.evictionCandidate(state.slots.values)
                guard let evicted else { return (false, nil) }
                state.slots[ObjectIdentifier(evicted)] = nil
            }
            state.slots[ObjectIdentifier(slot)] = slot
            return (true, evicted)
        }
        evicted?.abort()
        return isAdmitted
    }

    func remove(_ slot: ConnectionSlot) { state.withLock { $0.slots[ObjectIdentifier(slot)] = nil } }

    /// Returns the connection to evict: the unauthenticated one whose last progress is the oldest; if all are
    /// authenticated, the idle one whose last progress is the oldest; `nil` if none is idle.
    private static func evictionCandidate(_ slots: some Collection<ConnectionSlot>) -> ConnectionSlot? {
        var oldest: (slot: ConnectionSlot, isAuthenticated: Bool, progress: UInt64)?
        for slot in slots {
            let isAuthenticated = slot.isAuthenticated.load(ordering: .relaxed)
            if isAuthenticated && slot.isBusy.load(ordering: .relaxed) { continue }
            let progress = slot.lastProgress.load(ordering: .relaxed)
            if let oldest {
                if isAuthenticated && !oldest.isAuthenticated { continue }
                if isAuthenticated == oldest.isAuthenticated && progress >= oldest.progress { continue }
            }
            oldest = (slot, isAuthenticated, progress)
        }
        return oldest?.slot
    }

    /// Closes all connections and admits no more.
    func closeAll() async {
        let slots = state.withLock { state in
            state.isClosed = true
            defer { state.slots = [:] }
            return Array(state.slots.values)
        }
        for slot in slots { slot.channel.close(promise: nil) }
        for slot in slots { try? await slot.channel.closeFuture.get() }
    }
}

extension Channel {
    /// Aborts the connection (RST).
    func abort() {
        let channel = self
        if let options = channel as? any SocketOptionProvider {
            options.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in channel.close(promise: nil) }
        } else {
            channel.close(promise: nil)
        }
    }
}
