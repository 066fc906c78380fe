internal import CommandSupport
internal import ConfigFiles
internal import Foundation
internal import LinkModel

/// The text of profiles and timelines.
enum ProfileText {
    /// Returns the tables of the built-in profiles and timelines.
    ///
    /// - Parameter width: The width that lines fit into. If it is too small for all columns, the names are left out,
    ///   and pairs of values share a unit.
    static func catalogue(width: Int? = nil) -> [String] {
        var profiles = table(isNarrow: false)
        let isTooWide = profiles.contains { $0.terminalWidth > width ?? .max }
        if isTooWide { profiles = table(isNarrow: true, width: width) }
        let timelines =
            [["TIMELINE", "REPEATS EVERY", "NAME"]]
            + ProfileCatalogue.timelines.map { file in
                [file.id, file.timeline.repeatsAfter.map(Units.time) ?? "-", file.name]
            }
        return profiles + [""] + TextTable.lines(timelines, width: width)
    }

    private static func table(isNarrow: Bool, width: Int? = nil) -> [String] {
        var rows = [["PROFILE", "DOWN", "UP", "DELAY DOWN/UP", "LOSS DOWN/UP", "DNS", "NAME"]]
        if isNarrow { rows = [["PROFILE", "DOWN", "UP", "DELAY", "LOSS", "DNS"]] }
        func pair(_ down: String, _ up: String) -> String {
            isNarrow ? "\(down.prefix { $0 != " " })/\(up)" : "\(down) / \(up)"
        }
        for profile in ProfileCatalogue.builtIn {
            let (down, up) = (profile.conditions.down, profile.conditions.up)
            rows.append(
                [
                    profile.id, down.rate?.description ?? "unlimited", up.rate?.description ?? "unlimited",
                    pair(Units.delay(down.delay), Units.delay(up.delay)), pair("\(down.loss)", "\(up.loss)"),
                    Units.delay(profile.conditions.dnsDelay),
                ] + (isNarrow ? [] : [profile.name]))
        }
        return TextTable.lines(rows, width: width)
    }

    /// Returns a timeline with its entries.
    static func lines(_ file: TimelineFile, width: Int? = nil) -> [String] {
        var lines = ["\(file.id): \(file.name)\(file.grade.map { " (\($0.rawValue))" } ?? "")"]
        if !file.about.isEmpty { lines.append(text(file.about, width: width)) }
        lines.append("")
        let rows = file.timeline.entries.map { [Units.time($0.start), text($0.phase)] }
        lines += TextTable.lines([["FROM", "CONDITIONS"]] + rows, width: width, wrapsLastColumn: true)
        if let period = file.timeline.repeatsAfter { lines.append("repeats every \(Units.time(period))") }
        return lines
    }

    private static func text(_ about: String, width: Int?) -> String {
        width.map { TextTable.wrapped(about, width: $0) } ?? about.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private static func text(_ phase: Timeline.Phase) -> String {
        switch phase {
        case .hold(let link): "\(link.name) (\(Units.conditions(link.conditions)))"
        case .ramp(let link, let over): "ramp to \(link.name) over \(Units.time(over))"
        case .flap(let intervals, let jitter):
            "alternates " + intervals.map { "\($0.link.name) \(Units.time($0.length))" }.joined(separator: ", ")
                + (jitter == .zero ? "" : ", ±\(jitter)")
        }
    }

    /// Returns a profile with the source of each number.
    static func lines(_ profile: Profile, width: Int? = nil) -> [String] {
        var lines = ["\(profile.id): \(profile.name) (\(profile.interface.rawValue))"]
        if !profile.about.isEmpty { lines.append(text(profile.about, width: width)) }
        let conditions = profile.conditions
        lines.append("")
        lines.append("round trip without queueing: \(Units.delay(conditions.up.delay + conditions.down.delay))")
        for (name, direction) in [("down", conditions.down), ("up", conditions.up)] {
            guard let rate = direction.rate else { continue }
            let full = rate.serializationTime(ofBytes: direction.queue.approximateBytes)
            lines.append("delay of a full queue \(name): \(Units.milliseconds(full))")
        }
        lines.append("")
        let rows = profile.figures.map { figure in
            [
                figure.key, figure.value, figure.grade?.rawValue ?? "-",
                figure.source?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "not given",
            ]
        }
        return lines
            + TextTable.lines(
                [["FIGURE", "VALUE", "GRADE", "SOURCE"]] + rows, width: width, wrapsLastColumn: true)
    }

    /// Returns the result of a successful check of a file.
    static func checked(_ file: ProfileCatalogue.ProfileOrTimeline) -> String {
        guard case .profile(let profile) = file else { return "ok: timeline" }
        let unsourced = profile.figures.count { $0.source == nil || $0.grade == nil }
        let note = unsourced == 0 ? "" : " (\(TextTable.count(unsourced, "figure")) without source or grade)"
        return "ok: \(Units.conditions(profile.conditions))\(note)"
    }
}
