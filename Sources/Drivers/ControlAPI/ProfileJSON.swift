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
    public var json: String { Self.shape.json(self) }

    /// The members of ``json``, for objects that contain more.
    var jsonMembers: [(key: String, value: String)] { Self.shape.texts(self) }

    static let shape = JSONShape<Conditions>([
        .required("connection_policy", \.connectionPolicy, .word),
        .required("down", \.down, DirectionConditions.shape.form),
        .required("up", \.up, DirectionConditions.shape.form),
        .required("dns_delay_ms", \.dnsDelay, .milliseconds()),
        .optional(
            "udp", { $0.datagrams.policy == .open ? nil : $0.datagrams.policy }, .word,
            "The treatment of datagrams; absent if open."),
        .optional(
            "mtu", \.datagrams.mtu,
            .integer(
                min: Int64(DatagramConditions.mtuAllowed.lowerBound),
                max: Int64(DatagramConditions.mtuAllowed.upperBound))),
        .optional("udp_idle_ms", \.datagrams.idle, .milliseconds(min: 1)),
        .optional("udp_rebind_ms", \.datagrams.rebind, .milliseconds(min: 1)),
    ])
}

extension DirectionConditions {
    /// The conditions of one direction as a JSON object, see ``Conditions/json``.
    public var json: String { Self.shape.json(self) }

    static let shape = JSONShape<DirectionConditions>(
        "Direction",
        [
            .required("rate_bps", \.rate?.bitsPerSecond, .orNull(.integer()), "Rate in bit/s; null: unlimited."),
            .required("delay_ms", \.delay, .milliseconds()),
            .required("loss_percent", \.loss, .percent),
            .required("queue", \.queue.description, .text),
            .optional("trace", \.trace, DeliveryTrace.shape.form, "The deliveries of a trace, in place of the rate."),
            .optional("jitter", \.jitter, Jitter.shape.form, "The variation of the delay."),
            .optional("bursts", \.bursts, BurstLoss.shape.form, "The losses of two states, good and bad."),
            .optional(
                "lost_packets", { $0.lostPackets.map { "\($0)" } }, .text, "The numbers of packets that are lost."),
            .optional("duplicate_percent", { $0.duplication == .zero ? nil : $0.duplication }, .percent),
            .optional("reorder_percent", { $0.reordering == .zero ? nil : $0.reordering }, .percent),
        ])
}

extension Jitter {
    fileprivate static let shape = JSONShape<Jitter>([
        .required("span_ms", \.span, .milliseconds()), .required("distribution", \.distribution, .word),
        .required("reorders", \.mayOvertake, .bool),
    ])
}

extension BurstLoss {
    /// The members of both cases: with probabilities of changes, or with mean times.
    fileprivate static let shape = JSONShape<BurstLoss>([
        .optional(
            "becomes_bad_percent", { if case .gilbertElliott(let value, _, _, _) = $0 { value } else { nil } }, .percent
        ),
        .optional(
            "becomes_good_percent", { if case .gilbertElliott(_, let value, _, _) = $0 { value } else { nil } },
            .percent
        ),
        .optional("mean_good_ms", { if case .timed(let time, _, _, _) = $0 { time } else { nil } }, .milliseconds()),
        .optional("mean_bad_ms", { if case .timed(_, let time, _, _) = $0 { time } else { nil } }, .milliseconds()),
        .required("loss_in_bad_percent", { $0.losses.inBad }, .percent),
        .required("loss_in_good_percent", { $0.losses.inGood }, .percent),
    ])

    private var losses: (inBad: Probability, inGood: Probability) {
        switch self {
        case .gilbertElliott(_, _, let inBad, let inGood), .timed(_, _, let inBad, let inGood): (inBad, inGood)
        }
    }
}

extension DeliveryTrace {
    fileprivate static let shape = JSONShape<DeliveryTrace>([
        .required("average_bps", \.averageBitsPerSecond, .count), .required("duration_ms", \.length, .milliseconds()),
    ])
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
                start, ("phase", JSONText.string("flap")), ("jitter_percent", JSONForm.percent.write(jitter)),
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
