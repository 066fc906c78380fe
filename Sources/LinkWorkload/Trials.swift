public import LinkModel

/// Trials one after the other on one link, each on a connection of its own that ends with a RST; between two the link
/// drains, and some 100 ms pass.
public struct Trials: ~Copyable {
    private var link: TCPLink
    private var chance: RandomStream
    private var now = Instant(.seconds(1))

    /// A trial without progress for so long has failed; so has one with an outage after three times its length more.
    public static let patience = Nanoseconds.seconds(120)
    /// Draining takes no longer.
    private static let drainMax = Nanoseconds.seconds(15)
    private static let requestBytes = 100

    /// Trials on a new link.
    public init(_ conditions: Conditions, seed: UInt64, client: StackPreset = .linux, server: StackPreset = .linux) {
        link = TCPLink(conditions, seed: seed, client: client, server: server)
        chance = RandomStream(seed: seed, "workload")
    }

    /// Trials on a new link whose conditions follow a timeline; it goes on while trials follow each other.
    public init(following timeline: Timeline, seed: UInt64, client: StackPreset = .linux, server: StackPreset = .linux)
    {
        self.init(.clear, seed: seed, client: client, server: server)
        link.follow(timeline, at: now)
    }

    /// Packets offered to either direction so far, lost and dropped ones included.
    public var packetsOffered: Int {
        [Direction.up, .down].reduce(0) { sum, direction in
            let counters = link.counters(direction)
            return sum + counters.packets + counters.packetsLost + counters.packetsDropped
        }
    }

    /// Runs one trial.
    public mutating func run(_ item: PlanItem) -> TrialResult {
        var trial = Trial(item, start: now, chance: chance)
        let result = trial.run(on: &link)
        chance = trial.chance
        now = trial.now
        link.setCut(PerDirection(up: false, down: false))
        drain(trial.flow)
        now = now + Nanoseconds(50_000_000 + chance.below(100_000_000))
        return result
    }

    private mutating func drain(_ flow: FlowID?) {
        let limit = now + Self.drainMax
        if let flow { link.abort(flow, from: .client, at: now) }
        while !link.isQuiet, let due = link.nextDue, due <= limit, link.runNext(until: due) { now = max(now, due) }
        if let flow { link.remove(flow) }
        while link.takeOccurrence() != nil {}
    }
}

/// One trial: both applications and the outage, as events beside the link's.
private struct Trial {
    private(set) var chance: RandomStream
    private(set) var now: Instant
    private(set) var flow: FlowID?
    private let item: PlanItem
    private var result: TrialResult
    private var isDone = false

    // What the applications will do, in order of time.
    private enum Act { case connect, beginOutage, endOutage, drip, ask }
    private var agenda: [(time: Instant, act: Act)] = []

    private var connectAt: Instant
    private var askedAt: Instant
    private var healedAt: Instant?
    private var received = 0
    private var serverReceived = 0
    private var firstAt: Instant?
    private var dripsLeft = 0
    private var lastProgress: Instant

    private static let dripEvery = Nanoseconds.milliseconds(100)
    private static let dripBytes = 1000

    init(_ item: PlanItem, start: Instant, chance: RandomStream) {
        self.item = item
        self.chance = chance
        now = start
        connectAt = start
        askedAt = start
        lastProgress = start
        result = TrialResult(item)
    }

    private mutating func random(_ milliseconds: ClosedRange<Int64>) -> Nanoseconds {
        .milliseconds(milliseconds.lowerBound)
            + Nanoseconds(chance.below((milliseconds.upperBound - milliseconds.lowerBound) * 1_000_000))
    }

    private mutating func plan(_ act: Act, at time: Instant) {
        let place = agenda.firstIndex { $0.time > time } ?? agenda.count
        agenda.insert((time, act), at: place)
    }

    private mutating func planOutage(at start: Instant) {
        guard let length = item.outage else { return }
        plan(.beginOutage, at: start)
        plan(.endOutage, at: start + length)
    }

    mutating func run(on link: inout TCPLink) -> TrialResult {
        if case .outageConnect = item {
            planOutage(at: now)
            let wait = random(200...700)
            plan(.connect, at: now + wait)
        } else {
            plan(.connect, at: now)
        }
        let outage = item.outage ?? .zero
        let patience = max(Trials.patience, outage + outage + outage + .seconds(60)) + outage
        while !isDone {
            let planned = agenda.first?.time ?? .never
            let due = link.nextDue ?? .never
            let next = min(planned, due)
            if next == .never {
                result.failure = "stalled: nothing is due"
                break
            }
            if next - lastProgress > patience {
                result.failure = "no progress within \(patience.count / 1_000_000_000) s"
                break
            }
            now = next
            if planned <= next {
                act(agenda.removeFirst().act, &link)
            } else {
                _ = link.runNext(until: next)
                while !isDone, let occurrence = link.takeOccurrence() { take(occurrence, &link) }
            }
        }
        return result
    }

    private mutating func act(_ act: Act, _ link: inout TCPLink) {
        switch act {
        case .connect:
            connectAt = now
            flow = link.open(at: now)
        case .beginOutage:
            link.setCut(PerDirection(up: true, down: true))
        case .endOutage:
            link.setCut(PerDirection(up: false, down: false))
            healedAt = now
            lastProgress = now
        case .drip:
            guard let flow, dripsLeft > 0 else { return }
            dripsLeft -= 1
            link.send(Self.dripBytes, on: flow, .down, at: now)
            plan(.drip, at: now + Self.dripEvery)
        case .ask:
            ask(200, &link)
        }
    }

    private mutating func ask(_ bytes: Int, _ link: inout TCPLink) {
        guard let flow else { return }
        askedAt = now
        link.send(bytes, on: flow, .up, at: now)
    }

    private mutating func take(_ occurrence: FlowOccurrence, _ link: inout TCPLink) {
        guard occurrence.flow == flow else { return }
        switch occurrence.event {
        case .established(.client): connected(&link)
        case .delivered(let bytes, .up): serverGot(bytes, &link)
        case .delivered(let bytes, .down): clientGot(bytes, &link)
        case .reset:
            result.failure = "reset"
            isDone = true
        case .established, .finished, .room: break
        }
    }

    private mutating func connected(_ link: inout TCPLink) {
        lastProgress = now
        result.connect = now - connectAt
        switch item {
        case .ttfb, .down: ask(100, &link)
        case .up(let bytes): ask(bytes, &link)
        case .pingPong(_, let bytes): ask(bytes, &link)
        case .connect: finish()
        case .outageDrip: ask(100, &link)
        case .outageRequest: ask(200, &link)
        case .outageBulk(_, _, let after):
            let begin = now + .milliseconds(Int64(after)) + random(0...100)
            planOutage(at: begin)
            ask(100, &link)
        case .outageConnect:
            result.resume = max(now - (healedAt ?? now), .zero)
            isDone = true
        }
    }

    private mutating func serverGot(_ bytes: Int, _ link: inout TCPLink) {
        guard let flow else { return }
        lastProgress = now
        let before = serverReceived
        serverReceived += bytes
        switch item {
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
            act(.drip, &link)
        default: break
        }
    }

    private mutating func clientGot(_ bytes: Int, _ link: inout TCPLink) {
        lastProgress = now
        let before = received
        received += bytes
        if firstAt == nil {
            firstAt = now
            if case .outageDrip = item {
                let begin = now + .seconds(2) + random(0...100)
                planOutage(at: begin)
            }
        }
        switch item {
        case .ttfb: if received >= 200 { finish() }
        case .down(let size): if received >= size { finish() }
        case .up: finish()
        case .pingPong(let count, let size):
            guard before / size < received / size else { return }
            result.exchanges.append(now - askedAt)
            if result.exchanges.count == count { finish() } else { ask(size, &link) }
        case .outageBulk(_, let size, _):
            noteResume(before)
            guard received >= size else { return }
            finish()
            if let healedAt, result.resume != nil { result.after = now - healedAt } else { result.isEarly = true }
        case .outageDrip(let seconds): dripped(before, seconds)
        case .outageRequest:
            if before < 200 && received >= 200 {
                planOutage(at: now + .seconds(1))
                let wait = random(1300...1600)
                plan(.ask, at: now + wait)
            } else if received >= 400 {
                finish()
                result.resume = max(now - (healedAt ?? now), .zero)
            }
        case .connect, .outageConnect: break
        }
    }

    private mutating func noteResume(_ before: Int) {
        guard let healedAt, result.resume == nil else { return }
        result.resume = now - healedAt
        result.got = before
    }

    private mutating func dripped(_ before: Int, _ seconds: Int) {
        guard let healedAt, let firstAt else { return }
        noteResume(before)
        let overdue = Int((now - firstAt).count / Self.dripEvery.count) * Self.dripBytes
        if received >= overdue {
            result.caught = now - healedAt
            isDone = true
        } else if now - healedAt > .seconds(Int64(max(20, 2 * seconds))) {
            result.isBehind = true
            isDone = true
        }
    }

    private mutating func finish() {
        // Exchanges are timed from the first request.
        let requestAt = result.connect.map { connectAt + $0 } ?? connectAt
        if case .outageRequest = item { result.done = now - askedAt } else { result.done = now - requestAt }
        if case .ttfb = item { result.first = firstAt.map { $0 - requestAt } }
        if case .down = item { result.first = firstAt.map { $0 - requestAt } }
        result.total = now - connectAt
        isDone = true
    }
}
