internal import DequeModule
internal import Determinism
internal import LinkModel

/// The records of the packets of connections: each packet that was offered, with its fate.
extension TCPLink {
    /// Starts or stops recording packets; ``takeRecord()`` still returns packets recorded before.
    public mutating func setRecording(_ recordsPackets: Bool) {
        self.recordsPackets = recordsPackets
        if !recordsPackets { return }
        for index in connections.indices where connections[index].isInUse {
            for direction in Direction.allCases {
                // An end that has sent at most its SYN counts its next recorded packet as its first.
                let end = connections[index].ends[direction]
                switch end.pointee.endpoint.state {
                case .closed, .synSent: break
                case .synReceived, .established, .reset:
                    end.pointee.recordedUpTo = end.pointee.dataSentUpTo
                }
            }
        }
    }

    /// Takes the record of the next packet that was offered.
    public mutating func takeRecord() -> PacketRecord? { records.popFirst() }

    /// Records a packet that was offered.
    mutating func record(
        _ segment: Segment, _ id: FlowID, _ direction: Direction, arrival: Int64?, isLost: Bool, at now: Int64
    ) {
        let end = end(id, direction)
        let recordedUpTo = end.pointee.recordedUpTo
        let next = max(0, recordedUpTo)
        let isHandshake = segment.kind == .syn || segment.kind == .synAck
        let range =
            switch segment.kind {
            case .data where !segment.isWindowProbe: segment.start..<segment.end
            case .data, .ack, .reset: next..<next
            case .syn, .synAck: Int64(0)..<0
            }
        end.pointee.recordedUpTo = max(next, range.upperBound)
        let fate: PacketRecord.Fate =
            if arrival != nil {
                .arrives
            } else if isLost {
                link.isBlocked(direction) ? .outage : .lost
            } else {
                .dropped
            }
        let kind: PacketRecord.Kind =
            switch segment.kind {
            case .syn: .syn
            case .synAck: .synAck
            case .data: .data
            case .ack: .ack
            case .reset: .reset
            }
        records.append(
            PacketRecord(
                flow: id, connectionNumber: connections[id.index].number, direction: direction,
                time: Instant(Nanoseconds(now)),
                arrival: arrival.map { Instant(Nanoseconds($0)) } ?? Instant(Nanoseconds(now))
                    + link.conditions[direction].delay,
                kind: kind,
                fate: fate, range: range, isFIN: segment.isFIN,
                isPSH: segment.isPSH, isWindowProbe: segment.isWindowProbe, isFirstOfSender: recordedUpTo < 0,
                isRetransmission: isHandshake ? recordedUpTo >= 0 : range.lowerBound < next,
                ackNumber: kind == .reset
                    ? end.pointee.endpoint.receiver.rcvNxt : segment.ackNumber,
                sackRanges: (0..<segment.sackBlocks.count).map {
                    segment.sackBlocks.range($0, from: segment.ackNumber)
                },
                isDSACK: segment.isDSACK, window: segment.window,
                timestamp: Instant(Nanoseconds(segment.timestamp)),
                timestampEcho: Instant(Nanoseconds(segment.timestampEcho)),
                bytes: segment.packetBytes))
    }
}
