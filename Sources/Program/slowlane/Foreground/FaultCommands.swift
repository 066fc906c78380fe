internal import CommandSupport
internal import ConfigFiles
internal import Impairment
internal import Proxy

/// The commands `fault` and `faults` of a running `slowlane proxy`, and the counts of its faults. The number of a fault
/// is that of its rule on the link plus 1.
struct FaultCommands {
    private let proxy: Proxy

    /// The bytes of a reply's body in the text of a rule.
    private static let bodyBytesMax = 40

    init(_ proxy: Proxy) { self.proxy = proxy }

    /// Adds or removes a fault: `POST * nth 3 before-response stall`, `remove 2`, `remove all`. Returns the reply.
    func execute(_ argument: String) async -> String {
        let words = argument.split(separator: " ")
        if words.first == "remove" { return await remove(words.dropFirst().joined(separator: " ")) }
        do {
            let rule = try FaultExpression.parse(argument)
            let number = try await proxy.addFaultRule(rule)
            let open = await proxy.status().connectionsWithoutFaults
            let note = open == 0 ? "" : "; does not apply to \(TextTable.count(open, "open connection"))"
            return "ok fault \(number + 1): \(Self.text(rule))\(note)"
        } catch let error as FaultExpression.ParseError {
            // A short text is perhaps meant to remove a fault: 'fault clear', 'fault delete 2'.
            let removal = words.count < 3 ? "; 'fault remove N' or 'fault remove all' removes faults" : ""
            return "error \(error.oneLine)\(removal)"
        } catch {
            return "error \(error)"
        }
    }

    private func remove(_ argument: String) async -> String {
        let rules = await proxy.faultRules()
        if argument == "all" {
            await proxy.removeFaultRules(rules.map(\.number))
            return "ok faults removed: \(rules.count)"
        }
        guard let number = Int(argument), let status = rules.first(where: { $0.number == number - 1 }) else {
            return
                "error there is no fault '\(argument.prefix(20))'; 'faults' lists them, 'fault remove all' removes all"
        }
        await proxy.removeFaultRules([status.number])
        return "ok fault \(number) removed: \(Self.counts(status))"
    }

    /// Returns the reply to `faults`.
    func list() async -> String {
        let rules = await proxy.faultRules()
        if rules.isEmpty { return "ok faults: none" }
        let note = await proxy.opaqueTLS().text.map { "; note: \($0)" } ?? ""
        return "ok faults: "
            + rules.map { "\($0.number + 1) (\(Self.counts($0))) \(Self.text($0.rule))" }.joined(separator: "; ") + note
    }

    /// Returns a line per fault, for the end of the process.
    func summary() async -> [String] {
        let texts = [await proxy.opaqueTLS().text, await proxy.interception().text]
        let notes = texts.compactMap(\.self).map { "note: \($0)" }
        return await proxy.faultRules().map { "fault \($0.number + 1): \(Self.counts($0)): \(Self.text($0.rule))" }
            + notes
    }

    private static func counts(_ status: FaultRuleStatus) -> String {
        "matched \(status.matched), fired \(status.fired)"
    }

    /// Returns a rule on one line of printable characters.
    static func text(_ rule: FaultRule) -> String {
        var text = ""
        for scalar in rule.text(bodyBytesMax: bodyBytesMax).unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
            text.unicodeScalars.append(isControl ? "?" : scalar)
        }
        return text
    }
}
