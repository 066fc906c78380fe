public import ConfigFiles
internal import Determinism
public import LinkModel
internal import Wire

// The JSON of conditions, profiles and timelines: one schema for the API and for `--json` of the command line. Units
// stand in the names: `rate_bps` (bit/s), `..._ms`, `..._percent`. Keys are in a fixed order.

extension Conditions {
    /// Conditions as a JSON object.
    ///
    /// ```json
    /// {"connection_policy":"open",
    ///  "down":{"rate_bps":780000,"delay_ms":100,"loss_percent":0,"queue":"50 packets"},
    ///  "up":{"rate_bps":330000,"delay_ms":100,"loss_percent":0,"queue":"50 packets"},"dns_delay_ms":0}
    /// ```
    ///
    /// A `rate_bps` of `null` is unlimited. Directions have more keys for impairments that apply: `trace`, `jitter`,
    /// `bursts`, `lost_packets`, `duplicate_percent`, `reorder_percent`. The treatment of datagrams adds `udp`,
    /// `mtu`, `udp_idle_ms` and `udp_rebind_ms`.
    public var json: String { JSONText.object(jsonMembers) }

    /// The members of ``json``, for objects that contain more.
    var jsonMembers: [(key: String, value: String)] {
        [
            ("connection_policy", JSONText.string(connectionPolicy.rawValue)), ("down", down.json), ("up", up.json),
            ("dns_delay_ms", JSONText.number(dnsDelay.inMilliseconds)),
        ] + datagrams.jsonMembers
    }
}

extension DatagramConditions {
    /// The members that differ from the treatment without effect.
    fileprivate var jsonMembers: [(key: String, value: String)] {
        var members: [(key: String, value: String)] = []
        if policy != .open { members.append(("udp", JSONText.string(policy.rawValue))) }
        if let mtu { members.append(("mtu", "\(mtu)")) }
        if let idle { members.append(("udp_idle_ms", JSONText.number(idle.inMilliseconds))) }
        if let rebind { members.append(("udp_rebind_ms", JSONText.number(rebind.inMilliseconds))) }
        return members
    }
}

extension DirectionConditions {
    /// The conditions of one direction as a JSON object, see ``Conditions/json``.
    public var json: String {
        var members: [(key: String, value: String)] = [
            ("rate_bps", rate.map { "\($0.bitsPerSecond)" } ?? "null"),
            ("delay_ms", JSONText.number(delay.inMilliseconds)), ("loss_percent", loss.jsonPercent),
            ("queue", JSONText.string(queue.description)),
        ]
        if let trace { members.append(("trace", trace.json)) }
        if let jitter { members.append(("jitter", jitter.json)) }
        if let bursts { members.append(("bursts", bursts.json)) }
        if let lostPackets { members.append(("lost_packets", JSONText.string("\(lostPackets)"))) }
        if duplication != .zero { members.append(("duplicate_percent", duplication.jsonPercent)) }
        if reordering != .zero { members.append(("reorder_percent", reordering.jsonPercent)) }
        return JSONText.object(members)
    }
}

extension Probability {
    /// The share in percent, as a JSON number.
    fileprivate var jsonPercent: String { JSONText.number(Double(partsPerMillion) / 10_000) }
}

extension Jitter {
    fileprivate var json: String {
        JSONText.object([
            ("span_ms", JSONText.number(span.inMilliseconds)), ("distribution", JSONText.string(distribution.rawValue)),
            ("reorders", mayOvertake ? "true" : "false"),
        ])
    }
}

extension BurstLoss {
    fileprivate var json: String {
        switch self {
        case .gilbertElliott(let becomesBad, let becomesGood, let lossInBad, let lossInGood):
            JSONText.object([
                ("becomes_bad_percent", becomesBad.jsonPercent), ("becomes_good_percent", becomesGood.jsonPercent),
                ("loss_in_bad_percent", lossInBad.jsonPercent), ("loss_in_good_percent", lossInGood.jsonPercent),
            ])
        case .timed(let good, let bad, let lossInBad, let lossInGood):
            JSONText.object([
                ("mean_good_ms", JSONText.number(good.inMilliseconds)),
                ("mean_bad_ms", JSONText.number(bad.inMilliseconds)),
                ("loss_in_bad_percent", lossInBad.jsonPercent), ("loss_in_good_percent", lossInGood.jsonPercent),
            ])
        }
    }
}

extension DeliveryTrace {
    fileprivate var json: String {
        JSONText.object([
            ("average_bps", "\(averageBitsPerSecond)"), ("duration_ms", JSONText.number(length.inMilliseconds)),
        ])
    }
}

extension Profile {
    /// The profile as a JSON object: `type`, `id`, `name`, `about`, `interface`, the members of ``Conditions/json`` and
    /// `figures` with the grade and source of each number.
    public var json: String {
        let figures = figures.map { figure in
            JSONText.object([
                ("key", JSONText.string(figure.key)), ("value", JSONText.string(figure.value)),
                ("grade", JSONText.string(figure.grade?.rawValue)),
                ("source", JSONText.string(figure.source.map(withoutSurroundingSpace))),
            ])
        }
        return JSONText.object(
            [
                ("type", JSONText.string("profile")), ("id", JSONText.string(id)), ("name", JSONText.string(name)),
                ("about", JSONText.string(withoutSurroundingSpace(about))),
                ("interface", JSONText.string(interface.rawValue)),
            ] + conditions.jsonMembers + [("figures", JSONText.array(figures))])
    }
}

extension TimelineFile {
    /// The timeline as a JSON object: `type`, `id`, `name`, `about`, `grade`, `repeats_every_ms` and `entries`.
    ///
    /// Each entry has `start_ms` and `phase`: `hold` with `link`; `ramp` with `link` and `duration_ms`; `flap` with
    /// `jitter_percent` and `intervals`, each with `duration_ms` and `link`. A `link` has a `name` and the members of
    /// ``Conditions/json``.
    public var json: String {
        JSONText.object([
            ("type", JSONText.string("timeline")), ("id", JSONText.string(id)), ("name", JSONText.string(name)),
            ("about", JSONText.string(withoutSurroundingSpace(about))), ("grade", JSONText.string(grade?.rawValue)),
            ("repeats_every_ms", timeline.repeatsAfter.map { JSONText.number($0.inMilliseconds) } ?? "null"),
            ("entries", JSONText.array(timeline.entries.map(\.json))),
        ])
    }
}

extension Timeline.Entry {
    fileprivate var json: String {
        let start = ("start_ms", JSONText.number(start.inMilliseconds))
        switch phase {
        case .hold(let link):
            return JSONText.object([start, ("phase", JSONText.string("hold")), ("link", link.json)])
        case .ramp(let link, let duration):
            return JSONText.object([
                start, ("phase", JSONText.string("ramp")), ("duration_ms", JSONText.number(duration.inMilliseconds)),
                ("link", link.json),
            ])
        case .flap(let intervals, let jitter):
            let parts = intervals.map { interval in
                JSONText.object([
                    ("duration_ms", JSONText.number(interval.length.inMilliseconds)), ("link", interval.link.json),
                ])
            }
            return JSONText.object([
                start, ("phase", JSONText.string("flap")), ("jitter_percent", jitter.jsonPercent),
                ("intervals", JSONText.array(parts)),
            ])
        }
    }
}

extension Timeline.NamedConditions {
    fileprivate var json: String {
        JSONText.object([("name", JSONText.string(name))] + conditions.jsonMembers)
    }
}

private func withoutSurroundingSpace(_ text: String) -> String {
    var text = Substring(text)
    while text.first?.isWhitespace == true { text.removeFirst() }
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
}
