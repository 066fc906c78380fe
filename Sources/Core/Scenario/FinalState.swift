/// The state at the end of a run: the server's notes, and what each device shows. Two runs that differ by a kill alone
/// must have the same (I11).
public struct FinalState: Hashable, Sendable {
    /// A note of a device without the digest of its values.
    public struct Row: Hashable, Sendable {
        /// The title.
        public let title: String?
        /// The text.
        public let text: String?
        /// The icon.
        public let icon: History.Icon
        /// Whether a deletion is pending.
        public let isDeleted: Bool
        /// Every text stored for the note.
        public let kept: [String]
    }

    /// A note of a user on the server.
    public struct Note: Hashable, Comparable, Sendable {
        /// The user.
        public let user: String
        /// The name.
        public let name: String

        public static func < (left: Note, right: Note) -> Bool { (left.user, left.name) < (right.user, right.name) }
    }

    /// The server's notes; `nil` if they were not read.
    public let server: [Note: History.ServerRow]?
    /// The notes of each device that has shown any, by their names.
    public let devices: [String: [String: Row]]
    /// The number of pending changes of each device.
    public let outboxes: [String: Int]

    /// Collects the state at the end of a run.
    public init(_ history: History) {
        var server: [Note: History.ServerRow]?
        var devices: [String: [String: Row]] = [:]
        var outboxes: [String: Int] = [:]
        for entry in history.entries {
            switch entry.event {
            case .server(let rows):
                server = Dictionary(rows.map { (Note(user: $0.user, name: $0.name), $0) }) { first, _ in first }
            case .device(let name, let state):
                outboxes[name] = state.outbox
                devices[name] = Dictionary(
                    state.rows.map {
                        (
                            $0.name,
                            Row(title: $0.title, text: $0.text, icon: $0.icon, isDeleted: $0.isDeleted, kept: $0.kept)
                        )
                    }
                ) { first, _ in first }
            default: continue
            }
        }
        (self.server, self.devices, self.outboxes) = (server, devices, outboxes)
    }

    /// Returns the differences from another state in words, in order; empty if there are none.
    ///
    /// - Parameter comparesRevisions: Whether the numbers of revisions must be the same, too.
    public func differences(from other: FinalState, comparesRevisions: Bool = true) -> [String] {
        var found: [String] = []
        if (server == nil) != (other.server == nil) {
            found.append("the server's notes were read in one run only")
        } else if let server, let expected = other.server {
            for note in Set(server.keys).union(expected.keys).sorted() {
                let name = "\(note.name) of \(note.user)"
                switch (server[note], expected[note]) {
                case (nil, _): found.append("the server has lost \(name)")
                case (_, nil): found.append("the server has \(name) besides")
                case (let left?, let right?):
                    if left.title != right.title || left.text != right.text {
                        found.append("the server has another content of \(name)")
                    } else if comparesRevisions, left.revision != right.revision {
                        found.append("the server has revision \(left.revision) of \(name), not \(right.revision)")
                    }
                }
            }
        }
        for device in Set(devices.keys).union(other.devices.keys).sorted() {
            let (left, right) = (devices[device] ?? [:], other.devices[device] ?? [:])
            for name in Set(left.keys).union(right.keys).sorted() where left[name] != right[name] {
                let what = left[name] == nil ? "has lost" : right[name] == nil ? "has gained" : "shows another state of"
                found.append("\(device) \(what) \(name)")
            }
            let counts = (outboxes[device] ?? 0, other.outboxes[device] ?? 0)
            if counts.0 != counts.1 { found.append("\(device) has \(counts.0) pending changes, not \(counts.1)") }
        }
        return found
    }
}
