internal import Scenario

/// Checks of names: the name of a note belongs to one user.
extension ScenarioReader {
    /// Reports names that stand for notes of several users, of which a condition would see only one.
    func checkOwners(_ scenario: Scenario) {
        let users = Dictionary(
            scenario.devices.map { ($0.name, $0.user) } + scenario.writers.map { ($0.name, $0.user) }
        ) { first, _ in first }
        let names = scenario.users.sorted()
        guard names.count > 1 else { return }
        var owners: [String: String] = [:]
        for step in scenario.steps {
            guard let (actor, action) = step.action, case .create(let row, _, _) = action, let user = users[actor]
            else { continue }
            let owner = owners[row] ?? user
            owners[row] = owner
            if owner != user {
                reader.report(
                    "'\(row)' is already a note of \(owner), and a name belongs to one user; choose another name for "
                        + "the note of \(user)", at: step.location)
            }
        }
        // The built-in server has the notes at the start once for each user.
        guard scenario.server == .builtIn, let device = scenario.devices.first?.name else { return }
        let seeded = Set(
            scenario.notes.map(\.row) + scenario.records.map(\.row) + (scenario.fill.map { Array($0.rows) } ?? []))
        for expectation in scenario.expectations {
            guard case .serverRow(let row, _, _, _) = expectation.kind, seeded.contains(row) else { continue }
            reader.report(
                "the server has a note '\(row)' of each user (\(names.joined(separator: ", "))); name the user by a "
                    + "device: 'finally: { \(device): { row: \(row), .. }, agree: [\(device), server] }'",
                at: expectation.location)
        }
    }
}
