internal import Determinism
internal import Scenario
internal import Yams

/// Expectations.
extension ScenarioFormat {
    static let expectations: [Object] =
        [
            expect.object, traffic.object, count.object, attempts.object, bytes.object, states.object,
            sometimes.object, faultPattern.object, eventually.object, state.object,
        ] + negations + [finally.object, serverEnd, rowEnd.object, threshold.object]

    static let expect = FormatMapping<[Expectation]>(
        "expect", "'expect'",
        [
            section(
                "traffic", .object(traffic), "Conditions on requests.", kinds: { [.traffic($0)] },
                entry: { if case .traffic(let traffic) = $0 { traffic } else { nil } }),
            section(
                "always", .states(in: "'always'"),
                "States that hold at all times from `since` to `until`. A note may appear later, but not vanish.",
                kinds: { $0.map { .always(device: $0.device, $0.condition) } },
                entry: { if case .always(let device, let state) = $0 { [DeviceState(device, state)] } else { nil } }),
            section(
                "sometimes", .object(sometimes),
                "States, requests or faults that are seen at least once; otherwise the verdict is inconclusive.",
                kinds: { $0.kinds }, entry: { Sometimes($0) }),
            section(
                "eventually", .object(eventually), "States that hold at least once in a window.", kinds: { $0.kinds },
                entry: { Eventually($0) }),
            FormatKey(
                Key("finally", .object("finally"), "The values at the end."),
                read: { fields, expectations in
                    if let node = fields["finally"] { expectations += finally.read(node, fields.reader) ?? [] }
                    return true
                },
                write: { expectations in
                    let entries = finally.entries(expectations)
                    return entries.isEmpty ? nil : .mapping(entries, isFlow: false)
                }),
            FormatKey(
                Key(
                    "thresholds", .map(.metric, .object("threshold")),
                    "Bounds of metrics: save-to-screen, save-to-synced (times), attempts-per-write (a number)."),
                read: { $0.reader.readThresholds($0["thresholds"], &$1) },
                write: { expectations in
                    let entries = expectations.compactMap { expectation -> YAMLTree.Entry? in
                        guard case .threshold(let found) = expectation.kind else { return nil }
                        return ScenarioWriter.entry(found.metric.rawValue, threshold.tree(found))
                    }
                    return entries.isEmpty ? nil : .mapping(entries, isFlow: false)
                }),
        ], needsKey: true, blank: { _ in [] },
        check: { expectations, fields in
            if expectations.isEmpty, fields.knowsAllKeys { fields.report("'expect' has no expectation") }
            return true
        })

    /// A section with a list of entries.
    ///
    /// - Parameters:
    ///   - kinds: Returns the expectations of an entry.
    ///   - entry: Returns the entry of an expectation; `nil` if it belongs to another section.
    private static func section<Entry>(
        _ name: String, _ codec: FormatCodec<Entry>, _ about: String,
        kinds: @escaping @Sendable (Entry) -> [Expectation.Kind],
        entry: @escaping @Sendable (Expectation.Kind) -> Entry?
    ) -> FormatKey<[Expectation]> {
        FormatKey(
            Key(name, .list(codec.shape, atLeast: 0, atMost: 1000), about),
            read: { fields, expectations in
                guard let node = fields[name], fields.hasLength(name) else { return true }
                let reader = fields.reader
                for item in reader.list(node) {
                    let found = codec.read(item, reader).map(kinds) ?? []
                    expectations += found.map { Expectation($0, location: reader.location(item)) }
                }
                return true
            },
            write: { expectations in
                let entries = expectations.compactMap { entry($0.kind) }
                return entries.isEmpty ? nil : .list(entries.map(codec.write), isFlow: false)
            })
    }

    // MARK: Traffic

    static let traffic = FormatMapping<Expectation.Traffic>(
        "traffic", "'traffic'",
        [
            .required(
                "request", \.request, .request,
                "The requests: `METHOD NOTE`, such as `PUT n1`; `any` matches every method, note or both."),
            .optional("from", \.from, .actor, default: "any", "The device or writer that sends the request."),
            .key(
                "seen", \.seen, .word, default: .server,
                "`server`: the requests that reach the server; `proxy`: all that enter the device's link. A request to "
                    + "which a captive portal or a fault responds before the server does not reach it."),
            .optional(
                "between", \.window, .window, default: "the script",
                "The start and the end of a window. The end `finally` is the end of the run: the requests of the restore phase "
                    + "count too."),
            .optional(
                "during", \.during, .during, default: "the whole run",
                "`flap`, or the name of a link: requests are counted while it is in effect. A writer has no link."),
            .optional(
                "count", \.count, .count, "The number of requests: a number, or `min` and `max`."
            ).amongAtLeastOne,
            .optional(
                "attempts", \.attempts, .range(.count(expected: countText), attempts, least: 0) { _ in .max },
                "The number of attempts of the devices: attempts to connect, and requests on connections that were open "
                    + "already. Needs `request: any`."
            ).amongAtLeastOne,
            .optional(
                "responses", \.responses, FormatCodec<Expectation.Traffic.Response>.response.list(0...1000),
                "The results in order: a status, `2xx`, `lost` (the server responded, the client received nothing), or "
                    + "`none` (the server did not respond)."
            ).amongAtLeastOne,
            .key(
                "same", \.same, FormatCodec<Expectation.Traffic.Sameness>.word.list(1...2), default: [], as: nil,
                "Properties that are equal in all matching requests."
            ).amongAtLeastOne,
            .optional(
                "order", \.order, FormatCodec<RequestPattern>.requestOrRow.list(2...1000),
                "Requests or notes whose first matching requests are in this order. An entry that is repeated stands for its "
                    + "next request."
            ).amongAtLeastOne,
            .optional(
                "duplicates", \.duplicates, .integer(0...numberMax),
                "The greatest number of requests with which the server has executed a write a second time. Without "
                    + "`between`, requests of the restore phase count too."
            ).amongAtLeastOne,
            .optional(
                "bytes-down", \.bytesDown, .range(.size, bytes, least: 0) { _ in .max },
                "The number of bytes of the responses' bodies that the server has sent into the link, received or not."
            ).amongAtLeastOne,
            .optional(
                "bytes-up", \.bytesUp, .range(.size, bytes, least: 0) { _ in .max },
                "The number of bytes of the requests' bodies that the client has sent into the link."
            ).amongAtLeastOne,
        ],
        blank: { _ in
            Expectation.Traffic(
                request: .any, from: nil, seen: .server, between: nil, count: nil, responses: nil, same: [])
        }, check: { $1.reader.check($0, $1) })

    /// A number of requests or attempts, in error messages.
    static let countText = "a number, or {min: .., max: ..}"

    static let count = bounds(
        "count", "'count'", .integer(0...numberMax), most: .mostOrBudget,
        "The greatest number. `budget` is the number of attempts that the client's retry policy allows in each outage.")

    private static let attempts = bounds("attempts", "'attempts'", .integer(0...numberMax), "The greatest number.")

    private static let bytes = bounds("bytes", "a number of bytes", .size, "The greatest number, such as `2MB`.")

    private static func bounds(
        _ name: String, _ title: String, _ number: FormatCodec<Int>, most: FormatCodec<Bounds.Most>? = nil,
        _ about: String
    ) -> FormatMapping<Bounds> {
        FormatMapping(
            name, title,
            [
                .optional("min", \.least, number, default: "0", "The least number."),
                .optional("max", \.most, most ?? .most(number), default: "no limit", about),
            ], needsKey: true, blank: { _ in Bounds() }, check: { $1.hasBound(title) })
    }

    // MARK: Sometimes and eventually

    static let sometimes = FormatMapping<Sometimes>(
        "sometimes", "'sometimes'",
        [
            anyState(\.states, "The state of at least one device."),
            .optional("fault", \.fault, .object(faultPattern), "A fault that applies."),
        ]
            // The keys of requests are read together.
            + traffic.keys.map { key in
                FormatKey(
                    Key(key.entry.name, key.entry.shape, default: key.entry.defaultText, key.entry.about),
                    read: { _, _ in true }, write: { $0.traffic.flatMap(key.write) })
            },
        named: deviceStates(\.states, after: 0), blank: { _ in Sometimes() }, check: { $1.reader.check(&$0, $1) })

    private static let faultPattern = FormatMapping<Expectation.FaultPattern>(
        "fault-pattern", "'fault'",
        [
            .optional("point", \.point, .word, default: "any", "The point of the exchange."),
            .optional("request", \.request, .request, default: "any", "The requests."),
        ], blank: { _ in Expectation.FaultPattern(point: nil, request: nil) },
        check: { pattern, _ in
            if pattern.point == .any { pattern.point = nil }
            return true
        })

    private static let eventually = FormatMapping<Eventually>(
        "eventually", "'eventually'",
        [
            .alternative(
                "by", .time, "The end of the window, which starts at 0 s.",
                get: { if case .by(let time) = $0.window { time } else { nil } }, set: { $0.window = .by($1) }),
            .alternative(
                "after", .mark, "The mark at which the window starts.",
                get: { if case .after(let mark, _) = $0.window { mark } else { nil } },
                set: { $0.window = .after($1, within: .zero) }),
            .part(
                "within", .time, "With `after`: the length of the window.",
                get: { if case .after(_, let within) = $0.window { within } else { nil } },
                set: { if case .after(let mark, _) = $0.window { $0.window = .after(mark, within: $1) } }),
            anyState(\.states, "The state of at least one device."),
        ], named: deviceStates(\.states, after: 3), blank: { _ in Eventually() },
        check: { $1.reader.checkEventually($1) })

    // MARK: The end

    private static let finally = FormatMapping<[Expectation]>(
        "finally", "'finally'",
        [
            FormatKey(
                Key("server", .object("server-end"), "The notes on the server."),
                read: { $0.reader.readServerEnd($0["server"], &$1) }, write: { serverTree($0) }),
            FormatKey(
                Key(
                    "agree", .list(.either([.name(.device), .choice(["server"])]), atLeast: 2, atMost: 101),
                    "Devices, and `server`, that have equal notes."),
                read: { $0.reader.readAgreement($0["agree"], &$1) },
                write: { expectations in
                    let names = expectations.lazy.compactMap {
                        if case .agree(let names) = $0.kind { names } else { nil }
                    }
                    return names.first.map { ScenarioWriter.brackets($0.map { .word($0) }) }
                }),
        ],
        named: .init(
            NamedKeys(
                .device, .either([.object("state"), .list(.object("state"), atLeast: 1, atMost: 1000)]), after: 1),
            names: \.deviceNames, read: { $0.reader.readLastStates($0, &$1) },
            write: { expectations in
                let states = expectations.compactMap { expectation in
                    if case .finally(let device, let state) = expectation.kind {
                        DeviceState(device, state)
                    } else {
                        nil
                    }
                }
                var seen: Set<String> = []
                return states.map(\.device).filter { seen.insert($0).inserted }.map { device in
                    let trees = states.filter { $0.device == device }.map { state.tree($0.condition) }
                    return ScenarioWriter.entry(device, trees.count == 1 ? trees[0] : .list(trees, isFlow: false))
                }
            }), blank: { _ in [] })

    private static let serverEnd = Object(
        "server-end", "'server'", [Key("count", .integer(0...numberMax), "The number of notes.")],
        named: NamedKeys(.row, .object("row-end"), after: 1))

    /// Returns the notes that are expected on the server; `nil` if none are.
    private static func serverTree(_ expectations: [Expectation]) -> YAMLTree? {
        var entries: [YAMLTree.Entry] = []
        for expectation in expectations {
            switch expectation.kind {
            case .serverCount(let count): entries.insert(ScenarioWriter.entry("count", .word("\(count)")), at: 0)
            case .serverRow(let row, let revision, let title, let text):
                let end = RowEnd(revision: revision, title: title, text: text)
                entries.append(ScenarioWriter.entry(row, rowEnd.tree(end)))
            default: break
            }
        }
        return entries.isEmpty ? nil : .mapping(entries, isFlow: entries.count == 1)
    }

    static let rowEnd = FormatMapping<RowEnd>(
        "row-end", "a note",
        [
            .optional("revision", \.revision, .integer(1...numberMax), "The number of the revision."),
            .optional("title", \.title, .text, "The title."), .optional("text", \.text, .text, "The text."),
        ], needsKey: true, blank: { _ in RowEnd() })

    static let threshold = FormatMapping<Threshold>(
        "threshold", "a threshold",
        Threshold.Statistic.allCases.map { statistic in
            FormatKey(
                Key(
                    statistic.rawValue, .either([.time, .integer(0...numberMax)]),
                    statistic == .max
                        ? "The greatest value." : "The value that \(statistic.rawValue.dropFirst()) % do not exceed."),
                read: { fields, threshold in
                    guard let node = fields[statistic.rawValue] else { return true }
                    let most =
                        threshold.metric.isTime
                        ? fields.reader.time(node)?.count : fields.reader.number(node, "a whole number").map(Int64.init)
                    if let most { threshold.bounds.append(Threshold.Bound(statistic, max: most)) }
                    return true
                },
                write: { threshold in
                    threshold.bounds.first { $0.statistic == statistic }.map { bound in
                        .word(threshold.metric.isTime ? QuantityText.time(Nanoseconds(bound.max)) : "\(bound.max)")
                    }
                })
        }, needsKey: true, blank: { _ in Threshold(.saveToScreen, []) },
        check: { threshold, fields in
            if threshold.bounds.isEmpty, fields.values.isEmpty, fields.knowsAllKeys {
                fields.report("a threshold needs one of \(fields.object.atLeastOne.joined(separator: ", "))")
            }
            return true
        })
}
