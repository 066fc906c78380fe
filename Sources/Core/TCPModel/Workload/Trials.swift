public import Determinism
public import LinkModel

/// A series of trials on one link. Each trial has its own connection, which ends with a RST; between two trials the
/// link drains and some 100 ms pass.
public struct Trials: ~Copyable {
    private var link: TCPLink
    private var random: RandomStream
    private var now = Instant(.seconds(1))

    /// The time without progress after which a trial without an outage fails. A trial with an outage of duration D
    /// fails after D + max(120 s, 3 D + 60 s) without progress.
    public static let progressTimeout = Nanoseconds.seconds(120)
    /// The longest wait until the link has drained.
    private static let drainMax = Nanoseconds.seconds(15)
    private static let requestBytes = 100

    /// Creates trials on a new link.
    public init(_ conditions: Conditions, seed: UInt64, client: StackPreset = .linux, server: StackPreset = .linux) {
        link = TCPLink(conditions, seed: seed, client: client, server: server)
        random = RandomStream(seed: seed, "workload")
    }

    /// Creates trials on a new link whose conditions follow a timeline, which continues from trial to trial.
    public init(following timeline: Timeline, seed: UInt64, client: StackPreset = .linux, server: StackPreset = .linux)
    {
        self.init(.clear, seed: seed, client: client, server: server)
        link.startTimeline(timeline, at: now)
    }

    /// The packets offered in both directions so far, including lost and dropped ones.
    public var packetsOffered: Int {
        [Direction.up, .down].reduce(0) { sum, direction in
            let counters = link.counters(direction)
            return sum + counters.packets + counters.packetsLost + counters.packetsDropped
        }
    }

    /// Runs one trial.
    public mutating func run(_ transfer: Transfer) -> TrialResult {
        var trial = Trial(transfer, start: now, random: random)
        let result = trial.run(on: &link)
        random = trial.random
        now = trial.now
        link.setOutage(PerDirection(up: false, down: false))
        drain(trial.flow)
        now = now + Nanoseconds(50_000_000 + random.integer(below: 100_000_000))
        return result
    }

    private mutating func drain(_ flow: FlowID?) {
        let limit = now + Self.drainMax
        if let flow { link.abort(flow, from: .client, at: now) }
        while !link.isIdle, let deadline = link.nextDeadline, deadline <= limit, link.advance(to: deadline) {
            now = max(now, deadline)
        }
        if let flow { link.remove(flow) }
        while link.takeEvent() != nil {}
    }
}

/// One trial: both applications and the outage, in addition to the link's events.
private struct Trial {
    private(set) var random: RandomStream
    private(set) var now: Instant
    private(set) var flow: FlowID?
    private let transfer: Transfer
    private var result: TrialResult
    private var isDone = false

    private enum Action { case connect, beginOutage, endOutage, drip, sendRequest }
    /// The planned actions, in order of time.
    private var schedule: [(time: Instant, action: Action)] = []

    private var connectAt: Instant
    private var requestedAt: Instant
    private var outageEndedAt: Instant?
    private var received = 0
    private var serverReceived = 0
    private var firstAt: Instant?
    private var dripsLeft = 0
    private var lastProgress: Instant

    private static let dripInterval = Nanoseconds.milliseconds(100)
    private static let dripBytes = 1000

    init(_ transfer: Transfer, start: Instant, random: RandomStream) {
        self.transfer = transfer
        self.random = random
        now = start
        connectAt = start
        requestedAt = start
        lastProgress = start
        result = TrialResult(transfer)
    }

    private mutating func randomSpan(_ milliseconds: ClosedRange<Int64>) -> Nanoseconds {
        .milliseconds(milliseconds.lowerBound)
            + Nanoseconds(random.integer(below: (milliseconds.upperBound - milliseconds.lowerBound) * 1_000_000))
    }

    private mutating func plan(_ action: Action, at time: Instant) {
        let index = schedule.firstIndex { $0.time > time } ?? schedule.count
        schedule.insert((time, action), at: index)
    }

    private mutating func planOutage(at start: Instant) {
        guard let length = transfer.outage else { return }
        plan(.beginOutage, at: start)
        plan(.endOutage, at: start + length)
    }

    mutating func run(on link: inout TCPLink) -> TrialResult {
        if case .outageConnect = transfer {
            planOutage(at: now)
            let wait = randomSpan(200...700)
            plan(.connect, at: now + wait)
        } else {
            plan(.connect, at: now)
        }
        let outage = transfer.outage ?? .zero
        let timeout = max(Trials.progressTimeout, outage + outage + outage + .seconds(60)) + outage
        while !isDone {
            let planned = schedule.first?.time ?? .never
            let deadline = link.nextDeadline ?? .never
            let next = min(planned, deadline)
            if next == .never {
                result.failure = "stalled: no event is due"
                break
            }
            if next - lastProgress > timeout {
                result.failure = "no progress within \(timeout.count / 1_000_000_000) s"
                break
            }
            now = next
            if planned <= next {
                perform(schedule.removeFirst().action, &link)
            } else {
                _ = link.advance(to: next)
                while !isDone, let event = link.takeEvent() { receive(event, &link) }
            }
        }
        return result
    }

    private mutating func perform(_ action: Action, _ link: inout TCPLink) {
        switch action {
        case .connect:
            connectAt = now
            flow = link.open(at: now)
        case .beginOutage:
            link.setOutage(PerDirection(up: true, down: true))
        case .endOutage:
            link.setOutage(PerDirection(up: false, down: false))
            outageEndedAt = now
            lastProgress = now
        case .drip:
            guard let flow, dripsLeft > 0 else { return }
            dripsLeft -= 1
            link.send(Self.dripBytes, on: flow, .down, at: now)
            plan(.drip, at: now + Self.dripInterval)
        case .sendRequest:
            sendRequest(200, &link)
        }
    }

    private mutating func sendRequest(_ bytes: Int, _ link: inout TCPLink) {
        guard let flow else { return }
        requestedAt = now
        link.send(bytes, on: flow, .up, at: now)
    }

    private mutating func receive(_ event: TimedFlowEvent, _ link: inout TCPLink) {
        guard event.flow == flow else { return }
        switch event.event {
        case .established(.client): connected(&link)
        case .delivered(let bytes, .up): serverReceive(bytes, &link)
        case .delivered(let bytes, .down): clientReceive(bytes, &link)
        case .reset:
            result.failure = "reset"
            isDone = true
        case .established, .finished, .writable: break
        }
    }

    private mutating func connected(_ link: inout TCPLink) {
        lastProgress = now
        result.connect = now - connectAt
        switch transfer {
        case .ttfb, .down: sendRequest(100, &link)
        case .up(let bytes): sendRequest(bytes, &link)
        case .pingPong(_, let bytes): sendRequest(bytes, &link)
        case .connect: finish()
        case .outageDrip: sendRequest(100, &link)
        case .outageRequest: sendRequest(200, &link)
        case .outageBulk(_, _, let after):
            let begin = now + .milliseconds(Int64(after)) + randomSpan(0...100)
            planOutage(at: begin)
            sendRequest(100, &link)
        case .outageConnect:
            result.resume = max(now - (outageEndedAt ?? now), .zero)
            isDone = true
        }
    }

    private mutating func serverReceive(_ bytes: Int, _ link: inout TCPLink) {
        guard let flow else { return }
        lastProgress = now
        let before = serverReceived
        serverReceived += bytes
        switch transfer {
        case .ttfb where before < 100 && serverReceived >= 100: link.send(200, on: flow, .down, at: now)
        case .down(let size) where before < 100 && serverReceived >= 100: link.send(size, on: flow, .down, at: now)
        case .outageBulk(_, let size, _) where before < 100 && serverReceived >= 100:
            link.send(size, on: flow, .down, at: now)
        case .up(let size) where before < size && serverReceived >= size: link.send(1, on: flow, .down, at: now)
        case .pingPong(_, let size) where before / size < serverReceived / size:
            link.send(size, on: flow, .down, at: now)
        case .outageRequest where before / 200 < serverReceived / 200: link.send(200, on: flow, .down, at: now)
        case .outageDrip(let seconds) where before < 100 && serverReceived >= 100:
            dripsLeft = (60 + 3 * seconds) * 10
            perform(.drip, &link)
        default: break
        }
    }

    private mutating func clientReceive(_ bytes: Int, _ link: inout TCPLink) {
        lastProgress = now
        let before = received
        received += bytes
        if firstAt == nil {
            firstAt = now
            if case .outageDrip = transfer {
                let begin = now + .seconds(2) + randomSpan(0...100)
                planOutage(at: begin)
            }
        }
        switch transfer {
        case .ttfb: if received >= 200 { finish() }
        case .down(let size): if received >= size { finish() }
        case .up: finish()
        case .pingPong(let count, let size):
            guard before / size < received / size else { return }
            result.exchanges.append(now - requestedAt)
            if result.exchanges.count == count { finish() } else { sendRequest(size, &link) }
        case .outageBulk(_, let size, _):
            recordResume(before)
            guard received >= size else { return }
            finish()
            if let outageEndedAt, result.resume != nil {
                result.lastByteAfterOutage = now - outageEndedAt
            } else {
                result.isEarly = true
            }
        case .outageDrip(let seconds): receiveDrip(before, seconds)
        case .outageRequest:
            if before < 200 && received >= 200 {
                planOutage(at: now + .seconds(1))
                let wait = randomSpan(1300...1600)
                plan(.sendRequest, at: now + wait)
            } else if received >= 400 {
                finish()
                result.resume = max(now - (outageEndedAt ?? now), .zero)
            }
        case .connect, .outageConnect: break
        }
    }

    private mutating func recordResume(_ before: Int) {
        guard let outageEndedAt, result.resume == nil else { return }
        result.resume = now - outageEndedAt
        result.bytesBeforeResume = before
    }

    private mutating func receiveDrip(_ before: Int, _ seconds: Int) {
        guard let outageEndedAt, let firstAt else { return }
        recordResume(before)
        let overdue = Int((now - firstAt).count / Self.dripInterval.count) * Self.dripBytes
        if received >= overdue {
            result.caughtUp = now - outageEndedAt
            isDone = true
        } else if now - outageEndedAt > .seconds(Int64(max(20, 2 * seconds))) {
            result.isBehind = true
            isDone = true
        }
    }

    private mutating func finish() {
        // Exchanges are measured from the first request.
        let requestAt = result.connect.map { connectAt + $0 } ?? connectAt
        if case .outageRequest = transfer {
            result.lastByte = now - requestedAt
        } else {
            result.lastByte = now - requestAt
        }
        if case .ttfb = transfer { result.firstByte = firstAt.map { $0 - requestAt } }
        if case .down = transfer { result.firstByte = firstAt.map { $0 - requestAt } }
        result.total = now - connectAt
        isDone = true
    }
}
