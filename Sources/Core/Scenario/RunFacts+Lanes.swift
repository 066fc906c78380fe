internal import Determinism

/// Changes that wait for a write in flight.
extension RunFacts {
    /// The lane of a change: changes from a size on are sent beside others, in an order of their own.
    enum Lane { case small, large, unknown }

    /// The number of bytes by which the body of a write is longer than title and text, at most.
    private static let overheadMax = 400

    private var largeBytes: Int { scenario.policy.largeBytes ?? 16 << 10 }

    /// Returns the lane of a change as its device shows it.
    func lane(of row: Row?) -> Lane {
        guard let row else { return .unknown }
        if row.isDeleted { return .small }
        let bytes = (row.text ?? "").utf8.count + (row.title ?? "").utf8.count
        return bytes >= largeBytes ? .large : bytes + Self.overheadMax < largeBytes ? .small : .unknown
    }

    private func lane(of write: History.Exchange) -> Lane {
        if write.method == "DELETE" { return .small }
        return write.bytesUp - Self.overheadMax >= largeBytes
            ? .large : write.bytesUp < largeBytes ? .small : .unknown
    }

    /// Returns whether a write of a device that succeeds keeps others of a lane, or of a note, from being prepared between
    /// two entries, and ends before a third. A request that is prepared but fails before it is recorded needs an idle lane.
    func isBlocked(_ lane: Lane, _ row: String?, of device: Device, _ entries: Range<Int>, before end: Int) -> Bool {
        device.exchanges.contains { index in
            let write = exchanges[index]
            guard Self.isWrite(write), write.sentIndex < entries.lowerBound, let ended = write.end?.index,
                ended > entries.upperBound, ended < end, isAnswered(write), write.fault == nil,
                let status = write.receivedStatus, (200...299).contains(status)
            else { return false }
            return write.row == row || lane != .unknown && self.lane(of: write) == lane
        }
    }
}
