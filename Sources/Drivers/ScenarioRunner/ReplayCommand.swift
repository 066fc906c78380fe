internal import Scenario

/// The command line that repeats a run.
public enum ReplayCommand {
    /// Returns the arguments, beginning with the name of the program; an option is together with its value.
    private static func groups(_ run: PlannedRun) -> [[String]] {
        if let replay = run.replay { return replay }
        // A path that begins with a hyphen would be an option.
        let source = run.source.hasPrefix("-") ? "./\(run.source)" : run.source
        var groups = [
            ["slowlane", "run", source], ["--variant", run.scenario.variant ?? "none"], ["--seed", "\(run.seed)"],
        ]
        for mutant in run.mutants { groups.append(["--mutant", mutant.name]) }
        if run.world == .live && run.scenario.realTimeReason == nil { groups.append(["--live"]) }
        for device in run.scenario.devices where run.clients.contains(device.name) {
            guard case .run(let program, _) = device.client else { continue }
            let command = program.arguments.map(quoted).joined(separator: " ")
            groups.append(["--device", "\(device.name)=\(command)"])
        }
        return groups
    }

    /// Returns the arguments, beginning with the name of the program.
    public static func arguments(_ run: PlannedRun) -> [String] { groups(run).flatMap { $0 } }

    /// Returns an argument as a word of a POSIX shell.
    public static func quoted(_ argument: String) -> String {
        let isPlain = argument.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
            case UInt8(ascii: "+")...UInt8(ascii: ":"), UInt8(ascii: "_"), UInt8(ascii: "@"): true
            default: false
            }
        }
        if isPlain && !argument.isEmpty { return argument }
        var text = "'"
        for character in argument.unicodeScalars {
            if character == "'" { text += "'\\''" } else { text.unicodeScalars.append(character) }
        }
        return text + "'"
    }

    /// Returns the command in lines of at most `width` columns where its arguments allow it; all but the last end with
    /// a backslash.
    public static func lines(_ run: PlannedRun, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for argument in groups(run).map({ $0.map(quoted).joined(separator: " ") }) {
            if !line.isEmpty && line.count + argument.count + 3 > width {
                lines.append(line + " \\")
                line = "    " + argument
            } else {
                line += line.isEmpty ? argument : " \(argument)"
            }
        }
        return lines + [line]
    }
}
