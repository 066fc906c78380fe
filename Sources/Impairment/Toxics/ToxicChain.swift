internal import LinkModel
internal import NIOCore

/// The toxics of one connection's direction, each with what waits before it.
///
///     socket -> [input toxic] -> [input toxic] -> ... -> the link
///
/// Asked for what comes out with ``next(at:hasRoom:)`` whenever something has gone in, when it is due, and when there is room
/// behind it again.
struct ToxicChain {
    /// What comes out at the end.
    enum Output {
        case bytes(ByteBuffer, alone: Bool)
        case end(ToxicInput.End)
        case reset
    }

    private struct Stage {
        var toxic: Toxic
        var machine: any ToxicMachine
        var input: ToxicInput
        /// Where its chance comes from, as often as it is drawn again.
        var coins: RandomStream
        /// Whether it is applied to this connection.
        var isDrawn = false
        /// Bytes that a `limit_data` has let pass, whatever the toxic has been since.
        var passed: Int64 = 0
        /// A `timeout` has been here: bytes are missing.
        var hasSwallowed = false
        /// When it wants to be asked again; `nil` is when something comes.
        var due: Instant?
        var hasEnded = false

        var hasRoom: Bool { input.chunks.count < machine.chunksMax }

        mutating func step(at now: Instant) -> ToxicStep { machine.step(&input, at: now) }
    }

    private var stages: [Stage] = []
    /// Bytes that wait.
    private(set) var count = 0
    /// Losses of the link that toxics ask for, of this connection alone.
    private(set) var losses: [CorrelatedLoss] = []
    /// The alarm that has been set for it, if any.
    var alarm: Instant?

    var isEmpty: Bool { stages.isEmpty }

    /// Whether the socket is to be read no more for a while.
    var isFull: Bool { stages.first.map { !$0.hasRoom } ?? false }

    /// Whether anything waits that will come out or must be awaited: bytes or the end.
    var holdsSomething: Bool { count > 0 || stages.contains { $0.input.end != nil && !$0.hasEnded } }

    /// When it is to be asked next; not while there is no room behind it.
    func nextDue(hasRoom: Bool) -> Instant? {
        var earliest: Instant?
        for (index, stage) in stages.enumerated() {
            guard let due = stage.due, due < .never, isFree(behind: index, hasRoom) || stage.machine.isUrgent else {
                continue
            }
            earliest = min(earliest ?? due, due)
        }
        return earliest
    }

    // MARK: The toxics

    /// Puts a toxic nearest the link. Its chance is drawn from `coins`.
    mutating func add(_ toxic: Toxic, coins: RandomStream, at now: Instant) {
        var coins = coins
        let isDrawn = coins.bool(probability: toxic.toxicity)
        let machine = Self.machine(isDrawn ? toxic.effect : .noop, &coins, passed: 0, at: now)
        stages.append(
            Stage(toxic: toxic, machine: machine, input: ToxicInput(at: now), coins: coins, isDrawn: isDrawn))
        noteLosses()
    }

    /// Gives a toxic other settings: what it holds goes out at once, what waits before it meets the new ones.
    mutating func update(_ toxic: Toxic, at now: Instant) {
        guard let index = stages.firstIndex(where: { $0.toxic.name == toxic.name }) else { return }
        if stages[index].due != nil, stages[index].machine.holdsFirst, let held = stages[index].input.take() {
            count -= held.readableBytes
            hand(held, behind: index, at: now)
        }
        if let limit = stages[index].machine as? LimitDataToxic { stages[index].passed = limit.passed }
        if stages[index].machine.mustCloseOnRemoval { stages[index].hasSwallowed = true }
        stages[index].toxic = toxic
        stages[index].due = nil
        stages[index].isDrawn = stages[index].coins.bool(probability: toxic.toxicity)
        let effect = stages[index].isDrawn ? toxic.effect : .noop
        let passed = stages[index].passed
        stages[index].machine = Self.machine(effect, &stages[index].coins, passed: passed, at: now)
        noteLosses()
    }

    /// Takes a toxic out: everything that waits before it goes on at once, in order. `true` if the connection must be closed,
    /// because bytes are missing.
    mutating func remove(_ name: String, at now: Instant) -> Bool {
        guard let index = stages.firstIndex(where: { $0.toxic.name == name }) else { return false }
        let mustClose = stages[index].machine.mustCloseOnRemoval || stages[index].hasSwallowed
        while let chunk = stages[index].input.take() {
            count -= chunk.readableBytes
            hand(chunk, behind: index, at: now)
        }
        if let end = stages[index].input.end, !stages[index].hasEnded { handEnd(end, behind: index) }
        stages.remove(at: index)
        noteLosses()
        return mustClose
    }

    /// What has left the chain's end while toxics were changed; it goes first.
    private var released: [Output] = []

    /// Whether something has left the chain's end that ``next(at:hasRoom:)`` has not given yet.
    var hasReleased: Bool { !released.isEmpty }

    private mutating func hand(_ bytes: ByteBuffer, behind index: Int, at now: Instant) {
        if index + 1 < stages.count {
            count += bytes.readableBytes
            stages[index + 1].input.append(bytes, at: now)
        } else {
            released.append(.bytes(bytes, alone: false))
        }
    }

    private mutating func handEnd(_ end: ToxicInput.End, behind index: Int) {
        if index + 1 < stages.count {
            stages[index + 1].input.finish(end)
        } else {
            released.append(.end(end))
        }
    }

    private mutating func noteLosses() {
        losses = []
        for index in stages.indices {
            guard stages[index].isDrawn, case .packetLoss(let rate, let correlation) = stages[index].toxic.effect else {
                continue
            }
            losses.append(
                CorrelatedLoss(rate: rate, correlation: correlation, random: Self.split(&stages[index].coins)))
        }
    }

    private static func machine(
        _ effect: Toxic.Effect, _ coins: inout RandomStream, passed: Int64, at now: Instant
    ) -> any ToxicMachine {
        switch effect {
        case .latency(let latency, let jitter):
            return LatencyToxic(latency: latency, jitter: jitter, chance: split(&coins))
        case .bandwidth(let rate): return BandwidthToxic(rate: rate)
        case .slowClose(let delay): return SlowCloseToxic(delay: delay)
        case .timeout(let timeout): return TimeoutToxic(timeout: timeout, at: now)
        case .resetPeer(let timeout): return ResetPeerToxic(timeout: timeout)
        case .slicer(let averageSize, let sizeVariation, let delay):
            return SlicerToxic(
                averageSize: averageSize, sizeVariation: sizeVariation, delay: delay, chance: split(&coins))
        case .limitData(let bytes):
            return LimitDataToxic(bytes: bytes, passed: passed)
        case .packetLoss, .noop: return NoopToxic()
        }
    }

    private static func split(_ coins: inout RandomStream) -> RandomStream {
        RandomStream(seed: coins.next(), "toxic")
    }

    // MARK: Bytes

    mutating func take(_ bytes: ByteBuffer, at now: Instant) {
        guard !stages.isEmpty, stages[0].input.end == nil, !stages[0].hasEnded else { return }
        count += bytes.readableBytes
        stages[0].input.append(bytes, at: now)
    }

    mutating func finish(_ end: ToxicInput.End) {
        if !stages.isEmpty { stages[0].input.finish(end) }
    }

    /// What comes out next; `nil` if nothing does now.
    ///
    /// - Parameter hasRoom: Whether there is room for bytes behind the chain.
    mutating func next(at now: Instant, hasRoom: Bool) -> Output? {
        if !released.isEmpty { return released.removeFirst() }
        var index = stages.count - 1
        while index >= 0 {
            if let moved = step(index, at: now, hasRoom: hasRoom) {
                if let output = moved { return output }
                // What is behind it may go on now, and what is before it later.
                index = stages.count - 1
            } else {
                index -= 1
            }
        }
        return nil
    }

    private func isFree(behind index: Int, _ hasRoom: Bool) -> Bool {
        index + 1 < stages.count ? stages[index + 1].hasRoom : hasRoom
    }

    /// Asks one toxic; `nil` if nothing moved, otherwise what comes out at the end, if anything.
    private mutating func step(_ index: Int, at now: Instant, hasRoom: Bool) -> Output?? {
        guard !stages[index].hasEnded else { return nil }
        guard isFree(behind: index, hasRoom) || stages[index].machine.isUrgent else { return nil }
        if let due = stages[index].due, due > now, !stages[index].machine.isUrgent { return nil }
        stages[index].due = nil
        let before = stages[index].input.count
        let step = stages[index].step(at: now)
        count -= before - stages[index].input.count
        switch step {
        case .idle: return nil
        case .wait(until: let due):
            stages[index].due = due
            return nil
        case .pass(let bytes): return .some(pass(bytes, alone: false, behind: index, at: now))
        case .passAlone(let bytes): return .some(pass(bytes, alone: true, behind: index, at: now))
        case .finish: return .some(end(stages[index].input.end ?? .finished, index))
        case .close: return .some(end(.closed, index))
        case .reset: return .some(.reset)
        }
    }

    private mutating func pass(_ bytes: ByteBuffer, alone: Bool, behind index: Int, at now: Instant) -> Output? {
        if index + 1 == stages.count { return .bytes(bytes, alone: alone) }
        count += bytes.readableBytes
        stages[index + 1].input.append(bytes, at: now)
        return nil
    }

    private mutating func end(_ end: ToxicInput.End, _ index: Int) -> Output? {
        stages[index].hasEnded = true
        // What comes after a close is nobody's.
        for before in 0...index {
            count -= stages[before].input.count
            stages[before].input.dropAll()
            stages[before].due = nil
            stages[before].hasEnded = true
        }
        if index + 1 == stages.count { return .end(end) }
        stages[index + 1].input.finish(end)
        return nil
    }
}
