internal import Determinism
internal import LinkModel
internal import NIOCore

/// The toxics of one stream of a connection, each with an input queue of its own.
///
///     socket -> [input toxic] -> [input toxic] -> ... -> the link
///
/// A state machine: ``append(_:at:)``, ``finish(_:)``, ``hasRoom`` and the changes of toxics are its inputs;
/// ``takeAction()`` returns its output as of the time given to ``advance(to:)``.
struct ToxicChain {
    /// An output at the link's end of the chain.
    enum Action {
        case bytes(ByteBuffer, alone: Bool)
        case end(ToxicInput.End)
        case reset
    }

    private struct Stage {
        var toxic: Toxic
        var machine: any ToxicMachine
        var input: ToxicInput
        /// The random stream for the toxicity and for the seed of the toxic's own stream. Both are drawn again after
        /// each update.
        var random: RandomStream
        /// Whether the toxic applies to this connection.
        var isApplied = false
        /// Bytes that `limit_data` has passed, across updates.
        var bytesPassed: Int64 = 0
        /// Whether a `timeout` has applied, so that bytes of the stream are missing.
        var hasDiscardedBytes = false
        /// The time at which the machine runs again; `nil` means at the next input.
        var deadline: Instant?
        var hasEnded = false

        var hasRoom: Bool { input.chunks.count < machine.chunksMax }

        mutating func step(at now: Instant) -> ToxicStep { machine.step(&input, at: now) }
    }

    private var stages: [Stage] = []
    private var now = Instant.start
    /// Outputs of changed and removed toxics, which precede all others.
    private var released: [Action] = []
    /// Bytes in the input queues.
    private(set) var count = 0
    /// The losses that `packet_loss` toxics add on the link for this stream.
    private(set) var losses: [CorrelatedLoss] = []
    /// Whether the link accepts more bytes of this stream.
    var hasRoom: Bool
    /// The time of the ``LinkTimers`` timer that has been set for the chain, if any.
    var timer: Instant?

    init(hasRoom: Bool) { self.hasRoom = hasRoom }

    var isEmpty: Bool { stages.isEmpty }

    /// Whether the first toxic accepts no more chunks.
    var isFull: Bool { stages.first.map { !$0.hasRoom } ?? false }

    /// Whether the chain holds bytes or an end that has not been passed on.
    var isHolding: Bool { count > 0 || stages.contains { $0.input.end != nil && !$0.hasEnded } }

    /// Whether ``takeAction()`` returns outputs of changed or removed toxics.
    var hasReleasedActions: Bool { !released.isEmpty }

    /// The time at which ``advance(to:)`` must be called next. A toxic whose successor is full has no deadline, unless
    /// it ignores back-pressure.
    var nextDeadline: Instant? {
        var earliest: Instant?
        for (index, stage) in stages.enumerated() {
            guard let deadline = stage.deadline, deadline < .never,
                hasRoom(after: index) || stage.machine.ignoresBackPressure
            else { continue }
            earliest = min(earliest ?? deadline, deadline)
        }
        return earliest
    }

    mutating func advance(to time: Instant) {
        assert(time >= now, "time goes backwards")
        now = max(now, time)
    }

    // MARK: Toxics

    /// Adds a toxic at the link's end. `random` decides whether it applies to the connection.
    mutating func add(_ toxic: Toxic, random: RandomStream, at time: Instant) {
        advance(to: time)
        var random = random
        let isApplied = random.bool(probability: toxic.toxicity)
        let machine = Self.machine(isApplied ? toxic.effect : .noop, &random, bytesPassed: 0, at: now)
        stages.append(
            Stage(toxic: toxic, machine: machine, input: ToxicInput(at: now), random: random, isApplied: isApplied))
        updateLosses()
    }

    /// Changes the settings of a toxic. A chunk that it has begun to process is released at once; the new settings
    /// apply to later chunks.
    mutating func update(_ toxic: Toxic, at time: Instant) {
        guard let index = stages.firstIndex(where: { $0.toxic.name == toxic.name }) else { return }
        advance(to: time)
        if stages[index].deadline != nil, stages[index].machine.hasBegunFirstChunk,
            let held = stages[index].input.take()
        {
            count -= held.readableBytes
            release(held, after: index)
        }
        if let limit = stages[index].machine as? LimitDataToxic { stages[index].bytesPassed = limit.bytesPassed }
        if stages[index].machine.mustCloseOnRemoval { stages[index].hasDiscardedBytes = true }
        stages[index].toxic = toxic
        stages[index].deadline = nil
        stages[index].isApplied = stages[index].random.bool(probability: toxic.toxicity)
        let effect = stages[index].isApplied ? toxic.effect : .noop
        let bytesPassed = stages[index].bytesPassed
        stages[index].machine = Self.machine(effect, &stages[index].random, bytesPassed: bytesPassed, at: now)
        updateLosses()
    }

    /// Removes a toxic and releases all chunks of its input at once, in order. Returns whether the connection must be
    /// closed because the toxic has discarded bytes.
    mutating func remove(_ name: String, at time: Instant) -> Bool {
        guard let index = stages.firstIndex(where: { $0.toxic.name == name }) else { return false }
        advance(to: time)
        let mustClose = stages[index].machine.mustCloseOnRemoval || stages[index].hasDiscardedBytes
        while let chunk = stages[index].input.take() {
            count -= chunk.readableBytes
            release(chunk, after: index)
        }
        if let end = stages[index].input.end, !stages[index].hasEnded { releaseEnd(end, after: index) }
        stages.remove(at: index)
        updateLosses()
        return mustClose
    }

    private mutating func release(_ bytes: ByteBuffer, after index: Int) {
        if index + 1 < stages.count {
            count += bytes.readableBytes
            stages[index + 1].input.append(bytes, at: now)
        } else {
            released.append(.bytes(bytes, alone: false))
        }
    }

    private mutating func releaseEnd(_ end: ToxicInput.End, after index: Int) {
        if index + 1 < stages.count {
            stages[index + 1].input.finish(end)
        } else {
            released.append(.end(end))
        }
    }

    private mutating func updateLosses() {
        losses = []
        for index in stages.indices {
            guard stages[index].isApplied, case .packetLoss(let rate, let correlation) = stages[index].toxic.effect
            else { continue }
            losses.append(
                CorrelatedLoss(rate: rate, correlation: correlation, random: Self.split(&stages[index].random)))
        }
    }

    private static func machine(
        _ effect: Toxic.Effect, _ random: inout RandomStream, bytesPassed: Int64, at now: Instant
    ) -> any ToxicMachine {
        switch effect {
        case .latency(let latency, let jitter):
            return LatencyToxic(latency: latency, jitter: jitter, random: split(&random))
        case .bandwidth(let rate): return BandwidthToxic(rate: rate)
        case .slowClose(let delay): return SlowCloseToxic(delay: delay)
        case .timeout(let timeout): return TimeoutToxic(timeout: timeout, at: now)
        case .resetPeer(let timeout): return ResetPeerToxic(timeout: timeout)
        case .slicer(let averageSize, let sizeVariation, let delay):
            return SlicerToxic(
                averageSize: averageSize, sizeVariation: sizeVariation, delay: delay, random: split(&random))
        case .limitData(let bytes):
            return LimitDataToxic(bytes: bytes, bytesPassed: bytesPassed)
        case .packetLoss, .noop: return NoopToxic()
        }
    }

    private static func split(_ random: inout RandomStream) -> RandomStream {
        RandomStream(seed: random.next(), "toxic")
    }

    // MARK: Bytes

    /// Adds bytes that were read from the sender's socket.
    mutating func append(_ bytes: ByteBuffer, at time: Instant) {
        guard !stages.isEmpty, stages[0].input.end == nil, !stages[0].hasEnded else { return }
        advance(to: time)
        count += bytes.readableBytes
        stages[0].input.append(bytes, at: now)
    }

    /// Adds the end of the sender's stream.
    mutating func finish(_ end: ToxicInput.End) {
        if !stages.isEmpty { stages[0].input.finish(end) }
    }

    /// Returns the next output; `nil` if there is none now.
    mutating func takeAction() -> Action? {
        if !released.isEmpty { return released.removeFirst() }
        var index = stages.count - 1
        while index >= 0 {
            switch step(index) {
            case .output(let action): return action
            // The toxics after it may run now, and then those before it.
            case .moved: index = stages.count - 1
            case .nothing: index -= 1
            }
        }
        return nil
    }

    private func hasRoom(after index: Int) -> Bool {
        index + 1 < stages.count ? stages[index + 1].hasRoom : hasRoom
    }

    /// The result of running one toxic: no change, an input for the next toxic, or an output of the chain.
    private enum StepResult {
        case nothing, moved
        case output(Action)
    }

    private mutating func step(_ index: Int) -> StepResult {
        guard !stages[index].hasEnded else { return .nothing }
        guard hasRoom(after: index) || stages[index].machine.ignoresBackPressure else { return .nothing }
        if let deadline = stages[index].deadline, deadline > now, !stages[index].machine.ignoresBackPressure {
            return .nothing
        }
        stages[index].deadline = nil
        let before = stages[index].input.count
        let step = stages[index].step(at: now)
        count -= before - stages[index].input.count
        switch step {
        case .idle: return .nothing
        case .wait(until: let deadline):
            stages[index].deadline = deadline
            return .nothing
        case .pass(let bytes): return pass(bytes, alone: false, after: index)
        case .passAlone(let bytes): return pass(bytes, alone: true, after: index)
        case .finish: return end(stages[index].input.end ?? .finished, index)
        case .close: return end(.closed, index)
        case .reset: return .output(.reset)
        }
    }

    private mutating func pass(_ bytes: ByteBuffer, alone: Bool, after index: Int) -> StepResult {
        if index + 1 == stages.count { return .output(.bytes(bytes, alone: alone)) }
        count += bytes.readableBytes
        stages[index + 1].input.append(bytes, at: now)
        return .moved
    }

    private mutating func end(_ end: ToxicInput.End, _ index: Int) -> StepResult {
        stages[index].hasEnded = true
        // Bytes after the end are discarded.
        for before in 0...index {
            count -= stages[before].input.count
            stages[before].input.dropAll()
            stages[before].deadline = nil
            stages[before].hasEnded = true
        }
        if index + 1 == stages.count { return .output(.end(end)) }
        stages[index + 1].input.finish(end)
        return .moved
    }
}
