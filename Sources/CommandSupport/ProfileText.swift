public import ConfigFiles
internal import Foundation
internal import LinkModel

/// The text of profiles and timelines.
public enum ProfileText {
    /// Returns the tables of the built-in profiles and timelines.
    public static func catalogue() -> [String] {
        var profiles = [["PROFILE", "DOWN", "UP", "DELAY DOWN/UP", "LOSS DOWN/UP", "DNS", "NAME"]]
        for profile in ProfileCatalogue.builtIn {
            let (down, up) = (profile.conditions.down, profile.conditions.up)
            profiles.append([
                profile.id, down.rate?.description ?? "unlimited", up.rate?.description ?? "unlimited",
                "\(Units.delay(down.delay)) / \(Units.delay(up.delay))", "\(down.loss) / \(up.loss)",
                Units.delay(profile.conditions.dnsDelay), profile.name,
            ])
        }
        let timelines =
            [["TIMELINE", "REPEATS EVERY", "NAME"]]
            + ProfileCatalogue.timelines.map { file in
                [file.id, file.timeline.repeatsAfter.map(Units.time) ?? "-", file.name]
            }
        return TextTable.lines(profiles) + [""] + TextTable.lines(timelines)
    }

    /// Returns a timeline with its entries.
    public static func lines(_ file: TimelineFile) -> [String] {
        var lines = ["\(file.id): \(file.name)\(file.grade.map { " (\($0.rawValue))" } ?? "")"]
        if !file.about.isEmpty { lines.append(file.about.trimmingCharacters(in: .whitespacesAndNewlines)) }
        lines.append("")
        let rows = file.timeline.entries.map { [Units.time($0.start), text($0.phase)] }
        lines += TextTable.lines([["FROM", "CONDITIONS"]] + rows)
        if let period = file.timeline.repeatsAfter { lines.append("repeats every \(Units.time(period))") }
        return lines
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
    public static func lines(_ profile: Profile) -> [String] {
        var lines = ["\(profile.id): \(profile.name) (\(profile.interface.rawValue))"]
        if !profile.about.isEmpty { lines.append(profile.about.trimmingCharacters(in: .whitespacesAndNewlines)) }
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
        return lines + TextTable.lines([["FIGURE", "VALUE", "GRADE", "SOURCE"]] + rows)
    }

    /// Returns the result of a successful check of a file.
    public static func checked(_ file: ProfileCatalogue.ProfileOrTimeline) -> String {
        guard case .profile(let profile) = file else { return "ok: timeline" }
        let unsourced = profile.figures.count { $0.source == nil || $0.grade == nil }
        let note = unsourced == 0 ? "" : " (\(TextTable.count(unsourced, "figure")) without source or grade)"
        return "ok: \(Units.conditions(profile.conditions))\(note)"
    }
}
