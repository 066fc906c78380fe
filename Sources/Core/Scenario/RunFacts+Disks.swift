/// The disks of devices.
extension RunFacts.Device {
    /// A time in which the disk is full or slow.
    struct DiskDelay {
        let start: RunFacts.Moment
        /// The action that makes the disk normal again; `nil` if none does.
        var end: RunFacts.Moment?
        /// The entry of the first commit after it; `nil` if there is none.
        var commit: Int?
    }

    /// The times in which the disk may delay commits.
    var diskDelays: [DiskDelay] {
        var found: [DiskDelay] = []
        for action in actions {
            guard case .disk(let disk) = action.action else { continue }
            let isNormal = found.last.map { $0.end != nil } ?? true
            if disk != .normal, isNormal { found.append(DiskDelay(start: action.moment)) }
            guard disk == .normal, !isNormal else { continue }
            found[found.count - 1].end = action.moment
            found[found.count - 1].commit = commits.first { $0 > action.moment.index }
        }
        return found
    }

    /// Whether the disk may have delayed commits between two entries: it is full or slow from an action on until the first
    /// commit after it is normal again.
    func isDiskLate(from start: Int, to end: Int) -> Bool {
        diskDelays.contains { $0.start.index < end && ($0.end == nil || $0.commit ?? .max > start) }
    }
}
