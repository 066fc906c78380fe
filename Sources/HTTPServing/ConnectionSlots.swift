internal import NIOCore
internal import Synchronization

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// A connection's claim to be open.
final class ConnectionSlot: Sendable {
    /// Whether its client has authenticated once.
    let isAuthenticated = Atomic(false)
    /// Whether a request of it is being handled.
    let isBusy = Atomic(false)
    /// When it last got on, in nanoseconds of the loop's clock: opened, sent a whole head, or took a piece of a response.
    /// Bytes of a head alone do not count.
    let progress = Atomic(UInt64(0))
    fileprivate let channel: any Channel

    init(_ channel: any Channel) {
        self.channel = channel
        recordProgress()
    }

    func recordProgress() { progress.store(NIODeadline.now().uptimeNanoseconds, ordering: .relaxed) }

    /// Closes the connection by RST, so that the kernel keeps nothing of what was not read.
    func abort() { channel.abort() }
}

/// Which connections are open, and which of them gives way to a new one.
final class ConnectionSlots: Sendable {
    private struct State {
        var slots: [ObjectIdentifier: ConnectionSlot] = [:]
        var isClosed = false
    }

    private let max: Int
    private let state = Mutex(State())

    init(max: Int) { self.max = max }

    /// How many connections are open.
    var count: Int { state.withLock { $0.slots.count } }

    /// Admits a connection, in place of another if all slots are taken; `false` if none gives way.
    func admit(_ slot: ConnectionSlot) -> Bool {
        let (isAdmitted, evicted) = state.withLock { state -> (Bool, ConnectionSlot?) in
            if state.isClosed { return (false, nil) }
            var evicted: ConnectionSlot?
            if state.slots.count >= max {
                evicted = Self.idlest(state.slots.values)
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

    /// The connection that gives way: of those that have not authenticated the one that got on longest ago; if all have, of
    /// those that wait for a request.
    private static func idlest(_ slots: some Collection<ConnectionSlot>) -> ConnectionSlot? {
        var idlest: (slot: ConnectionSlot, isAuthenticated: Bool, progress: UInt64)?
        for slot in slots {
            let isAuthenticated = slot.isAuthenticated.load(ordering: .relaxed)
            if isAuthenticated && slot.isBusy.load(ordering: .relaxed) { continue }
            let progress = slot.progress.load(ordering: .relaxed)
            if let idlest {
                if isAuthenticated && !idlest.isAuthenticated { continue }
                if isAuthenticated == idlest.isAuthenticated && progress >= idlest.progress { continue }
            }
            idlest = (slot, isAuthenticated, progress)
        }
        return idlest?.slot
    }

    /// Closes all of them and admits none any more.
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
    /// Closes by RST.
    func abort() {
        let channel = self
        if let options = channel as? any SocketOptionProvider {
            options.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in channel.close(promise: nil) }
        } else {
            channel.close(promise: nil)
        }
    }
}

/// What all bodies may take together.
final class BodyBudget: Sendable {
    private let left: Atomic<Int>

    init(_ bytes: Int) { left = Atomic(bytes) }

    func take(_ bytes: Int) -> Bool {
        if left.subtract(bytes, ordering: .relaxed).newValue >= 0 { return true }
        give(bytes)
        return false
    }

    func give(_ bytes: Int) { left.add(bytes, ordering: .relaxed) }
}

/// What one request's body has taken from the budget; given back when neither its connection nor its handler holds the claim.
final class BodyReservation: Sendable {
    private let budget: BodyBudget
    private let taken = Atomic(0)

    init(_ budget: BodyBudget) { self.budget = budget }

    deinit { budget.give(taken.load(ordering: .relaxed)) }

    func take(_ bytes: Int) -> Bool {
        guard budget.take(bytes) else { return false }
        taken.add(bytes, ordering: .relaxed)
        return true
    }
}
