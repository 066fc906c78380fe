/// The users of devices and writers over a run: a user may sign in on a device of another one.
struct DeviceAccounts {
    /// The users of each actor with the indices of the entries from which they are its users.
    private var users: [String: [(index: Int, user: String)]] = [:]

    /// Whether no user signs in.
    let areFixed: Bool

    init(_ scenario: Scenario, _ history: History) {
        for writer in scenario.writers { users[writer.name] = [(0, writer.user)] }
        for device in scenario.devices { users[device.name] = [(0, device.user)] }
        areFixed = !scenario.steps.contains { $0.action?.action.kind == .signIn }
        if areFixed { return }
        for (index, entry) in history.entries.enumerated() {
            if case .action(let actor, .signIn(let user)) = entry.event { users[actor]?.append((index, user)) }
        }
    }

    /// Returns the user of a device or writer at an entry; by default at the end.
    func user(of actor: String, at index: Int = .max) -> String? { users[actor]?.last { $0.index <= index }?.user }

    /// Returns whether another user has signed in after an entry.
    func changes(of actor: String, after index: Int) -> Bool { users[actor]?.last.map { $0.index > index } ?? false }
}
