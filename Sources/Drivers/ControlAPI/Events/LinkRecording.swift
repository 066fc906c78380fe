internal import ConfigFiles
internal import Determinism
internal import Impairment
internal import LinkModel
internal import Proxy
internal import Wire

/// A recording of the links and faults of all proxies, from which a scenario can be written.
///
/// The states of proxies after changes are its inputs, each with the time in nanoseconds since 1970.
struct LinkRecording {
    /// The link of a proxy from a time on.
    struct Change: Hashable {
        /// The conditions, or a timeline at a position.
        enum Setting: Hashable {
            case constant(Timeline.NamedConditions)
            case timeline(TimelineFile, elapsed: Nanoseconds, seed: UInt64)
        }

        let start: Nanoseconds
        let setting: Setting
        let outage: PerDirection<Bool>
    }

    /// A fault that was added at a time.
    struct Fault: Hashable {
        let time: Nanoseconds
        let name: String
        let rule: FaultRule
    }

    /// The changes of one proxy.
    struct Track {
        let proxy: String
        fileprivate(set) var changes: [Change] = []
        fileprivate(set) var faults: [Fault] = []
        fileprivate var currentFaults: [ByteKey: FaultRule] = [:]
    }

    /// The time of the start.
    let started: Int64
    /// The time of the end; `nil` while the recording is on.
    private(set) var ended: Int64?
    private(set) var tracks: [Track] = []
    /// Whether changes were left out, because there were too many.
    private(set) var isFull = false

    /// The maximum number of changes and faults.
    static let stepsMax = 2000
    /// The maximum number of proxies.
    static let proxiesMax = 100
    /// The longest recording: what follows is left out.
    static let timeMax = Timeline.timeMax

    init(at time: Int64) { started = time }

    /// The number of recorded changes and faults, without the links at the start.
    var steps: Int { tracks.reduce(0) { $0 + $1.changes.count - 1 + $1.faults.count } }

    /// Ends the recording.
    mutating func end(at time: Int64) { if ended == nil { ended = max(time, started) } }

    /// Records the state of a proxy.
    mutating func record(_ proxy: ManagedProxy, _ status: ProxyStatus?, at time: Int64) {
        let offset = offset(time)
        guard ended == nil, offset <= Self.timeMax, steps < Self.stepsMax else {
            isFull = isFull || ended == nil
            return
        }
        var index = tracks.firstIndex { $0.proxy.hasSameBytes(as: proxy.name) }
        if index == nil {
            guard tracks.count < Self.proxiesMax else {
                isFull = true
                return
            }
            tracks.append(Track(proxy: proxy.name))
            index = tracks.count - 1
        }
        guard let index else { return }
        let isFirst = tracks[index].changes.isEmpty
        let change = Change(
            start: isFirst ? .zero : offset, setting: Self.setting(of: proxy, status), outage: proxy.outage)
        if isFirst || !Self.continues(tracks[index].changes[tracks[index].changes.count - 1], change) {
            if !isFirst, tracks[index].changes[tracks[index].changes.count - 1].start == change.start {
                tracks[index].changes.removeLast()
            }
            tracks[index].changes.append(change)
        }
        var currentFaults: [ByteKey: FaultRule] = [:]
        for fault in proxy.faults {
            let name = ByteKey(fault.name)
            currentFaults[name] = fault.rule
            if tracks[index].currentFaults[name] == fault.rule { continue }
            tracks[index].faults.append(Fault(time: offset, name: fault.name, rule: fault.rule))
        }
        tracks[index].currentFaults = currentFaults
    }

    /// Returns a time as an offset from the start, in whole milliseconds.
    private func offset(_ time: Int64) -> Nanoseconds {
        Nanoseconds(max(0, time.subtractingSaturating(started)) / 1_000_000 * 1_000_000)
    }

    private static func setting(of proxy: ManagedProxy, _ status: ProxyStatus?) -> Change.Setting {
        switch proxy.link {
        case .constant(let conditions, let profile):
            let isClear = conditions.isClear && conditions.connectionPolicy == .open
            return .constant(Timeline.NamedConditions(profile ?? (isClear ? "none" : "custom"), conditions))
        case .timeline(let file):
            if let paused = proxy.pausedTimeline {
                return .constant(
                    Timeline.NamedConditions(paused.name, status?.link.conditions ?? proxy.link.initialConditions))
            }
            return .timeline(file, elapsed: status?.link.timeline?.elapsed ?? .zero, seed: proxy.lastStartSeed)
        }
    }

    /// Returns whether a change is only the continuation of the one before.
    private static func continues(_ old: Change, _ new: Change) -> Bool {
        guard old.outage == new.outage else { return false }
        guard case .timeline(let file, let elapsed, let seed) = old.setting,
            case .timeline(let newFile, let newElapsed, let newSeed) = new.setting
        else { return old.setting == new.setting }
        let expected = elapsed + (new.start - old.start)
        return file == newFile && seed == newSeed && abs((newElapsed - expected).count) < positionTolerance
    }

    /// The difference of positions, in nanoseconds, below which a timeline was not moved.
    private static let positionTolerance: Int64 = 100_000_000

    // MARK: The scenario

    /// The maximum number of entries that one timeline becomes.
    private static let entriesMax = 1000
    /// The shortest time between two entries of a ramp.
    private static let rampStep: Int64 = 500_000_000

    /// Returns the links of a track up to the end, with their starts; no two start at the same time.
    static func links(
        of track: Track, until end: Nanoseconds, linksMax: Int = .max
    ) -> [(start: Nanoseconds, link: Timeline.NamedConditions)] {
        var links: [(start: Nanoseconds, link: Timeline.NamedConditions)] = []
        func append(_ start: Int64, _ link: Timeline.NamedConditions, _ outage: PerDirection<Bool>) {
            let start = Nanoseconds(start / 1_000_000 * 1_000_000)
            let link = self.link(link, outage)
            if links.last?.start == start { links.removeLast() }
            if links.last?.link == link { return }
            links.append((start, link))
        }
        for (index, change) in track.changes.enumerated() where links.count < linksMax {
            let next = index + 1 < track.changes.count ? track.changes[index + 1].start : end
            switch change.setting {
            case .constant(let link): append(change.start.count, link, change.outage)
            case .timeline(let file, let elapsed, let seed):
                var run = TimelineRun(
                    file.timeline, startingAt: Instant(change.start - elapsed), seed: seed, name: "link/timeline")
                _ = run.advance(to: Instant(change.start))
                var last = change.start.count
                append(last, Timeline.NamedConditions(run.name, run.conditions), change.outage)
                var pending: Int64?
                var count = 0
                while let time = run.nextDeadline?.sinceStart.count, time < next.count, count < entriesMax,
                    links.count < linksMax
                {
                    if let pending, !run.isRamping || time - pending >= rampStep {
                        append(pending, named(run), change.outage)
                        (last, count) = (pending, count + 1)
                    }
                    pending = nil
                    _ = run.advance(to: Instant(Nanoseconds(time)))
                    if run.isRamping, time - last < rampStep {
                        pending = time
                    } else {
                        append(time, named(run), change.outage)
                        (last, count) = (time, count + 1)
                    }
                }
                if let pending { append(pending, named(run), change.outage) }
            }
        }
        return links
    }

    /// Returns the current conditions; those within a ramp have no name.
    private static func named(_ run: TimelineRun) -> Timeline.NamedConditions {
        let profile = ProfileCatalogue.builtInProfile(named: run.name)
        return Timeline.NamedConditions(profile?.conditions == run.conditions ? run.name : "custom", run.conditions)
    }

    /// Returns a link with an outage.
    private static func link(
        _ link: Timeline.NamedConditions, _ outage: PerDirection<Bool>
    ) -> Timeline.NamedConditions {
        if outage.up && outage.down, let all = ProfileCatalogue.builtInProfile(named: "100-loss") {
            return Timeline.NamedConditions(all.id, all.conditions)
        }
        guard outage.up || outage.down else { return link }
        var conditions = link.conditions
        if outage.up { conditions.up.loss = .one }
        if outage.down { conditions.down.loss = .one }
        return Timeline.NamedConditions("custom", conditions)
    }

    /// Returns the scenario as YAML; `nil` without proxies, or if a link has a trace, which is a file of its own.
    ///
    /// - Parameter time: The current time, the end of a recording that is on.
    func yaml(at time: Int64) -> String? {
        guard !tracks.isEmpty else { return nil }
        let end = min(Self.timeMax, offset(ended ?? time))
        var devices: [(track: Track, name: String, links: [(start: Nanoseconds, link: Timeline.NamedConditions)])] = []
        var names: Set<String> = []
        var room = Self.linksMax
        for track in tracks {
            let name = Self.deviceName(of: track.proxy, names)
            names.insert(name)
            // The link at the start is always there: a device without a network is invalid.
            let links = Self.links(of: track, until: end, linksMax: max(1, room))
            room -= links.count
            devices.append((track, name, links))
        }
        var scenario = RecordedScenario(end: end, isComplete: !isFull && room > 0)
        for (track, name, links) in devices { scenario.add(track, device: name, links) }
        return scenario.yaml
    }

    /// What one proxy needs for a repetition without a scenario.
    struct Replay {
        let proxy: String
        /// The links as a timeline file; `nil` if a link has a trace, or if there is no room for its links.
        let timeline: String?
        /// The faults, each with the time at which it was added.
        let faults: [(time: Nanoseconds, rule: String)]
    }

    /// Returns the links and faults of each proxy, for `slowlane proxy --timeline` and `--fault`.
    func replays(at time: Int64) -> [Replay] {
        let end = min(Self.timeMax, offset(ended ?? time))
        let about = "Recorded by 'slowlane server' for \(QuantityText.time(end))."
        var room = Self.linksMax
        return tracks.map { track in
            let links = Self.links(of: track, until: end, linksMax: room + 1)
            var timeline: String?
            if links.count <= room {
                room -= links.count
                timeline = ScenarioWriter.timeline(name: "recorded", about: about, links)
            }
            return Replay(
                proxy: track.proxy, timeline: timeline,
                faults: track.faults.map { ($0.time, "\($0.rule)") })
        }
    }

    /// The number of links that are written: timelines can have many more of them than a file can have lines.
    static let linksMax = 4000

    /// An estimate of the number of bytes of ``yaml(at:)`` and ``replays(at:)``.
    var yamlBytes: Int {
        tracks.reduce(0) { sum, track in
            let entries = track.changes.reduce(track.faults.count) { count, change in
                if case .timeline = change.setting { count + Self.entriesMax } else { count + 1 }
            }
            return sum + 400 * entries
        }
    }

    /// Returns a name of letters and digits that begins with a capital letter.
    private static func deviceName(of proxy: String, _ taken: Set<String>) -> String {
        let letters = proxy.utf8.filter { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        }.prefix(30)
        var name = String(decoding: letters, as: UTF8.self)
        if let first = name.first, first.isLetter {
            name = first.uppercased() + name.dropFirst()
        } else {
            name = "P" + name
        }
        // YAML reads 'No' as a truth value.
        if !ScenarioWriter.isPlain(name) { name = "P" + name }
        if !taken.contains(name) { return name }
        return (2...taken.count + 2).lazy.map { "\(name)x\($0)" }.first { !taken.contains($0) } ?? name
    }
}
