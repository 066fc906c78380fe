internal import Determinism
internal import LinkModel

extension History.Entry {
    /// Appends the canonical encoding of the entry: time, kind, and values with their lengths; of the notes of a device
    /// their digests. Entries with equal encodings are equal.
    func encode(into encoder: inout EventEncoder) {
        encoder.add(time.count)
        event.encode(into: &encoder)
    }
}

/// An encoder of events as bytes, the same in every process: integers are little-endian, texts have their lengths, and
/// optional values a byte that tells whether there is one.
package struct EventEncoder {
    private(set) var bytes: [UInt8] = []
    /// The digests of the notes of one history that have been encoded.
    private var digests: [ObjectIdentifier: UInt64] = [:]

    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    mutating func add(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: Int64(truncatingIfNeeded: value).littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func add(_ value: (some FixedWidthInteger)?) {
        add(value != nil)
        if let value { add(value) }
    }

    mutating func add(_ value: Nanoseconds) { add(value.count) }

    mutating func add(_ value: Nanoseconds?) { add(value?.count) }

    mutating func add(_ value: Bool) { bytes.append(value ? 1 : 0) }

    mutating func add(_ value: Bool?) { bytes.append(value.map { $0 ? 2 : 1 } ?? 0) }

    mutating func add(_ text: String) {
        let utf8 = text.utf8
        add(utf8.count)
        bytes.append(contentsOf: utf8)
    }

    mutating func add(_ text: String?) {
        add(text != nil)
        if let text { add(text) }
    }

    mutating func add(_ value: some EncodedValue) { value.encode(into: &self) }

    mutating func add(_ value: (some EncodedValue)?) {
        add(value != nil)
        if let value { add(value) }
    }

    mutating func begin(_ kind: UInt8) { bytes.append(kind) }

    /// Adds the digest of a note, which is computed once: most notes of a state are those of the state before.
    mutating func add(digestOf row: History.DeviceState.Row) {
        if let known = digests[row.identity] { return add(known) }
        var encoder = EventEncoder()
        encoder.add(row.name)
        encoder.add(row.title)
        encoder.add(row.text)
        encoder.add(row.icon)
        encoder.add(row.isDeleted)
        encoder.add(row.kept.count)
        for text in row.kept { encoder.add(text) }
        encoder.add(row.opacity)
        encoder.add(row.isStruck)
        encoder.add(row.error)
        encoder.add(row.hasMarker)
        let digest = FNV1a.digest(encoder.bytes)
        digests[row.identity] = digest
        add(digest)
    }
}

extension History.Event {
    /// Appends the number of the kind and the values.
    func encode(into encoder: inout EventEncoder) { describe(to: &encoder) }
}

extension History {
    /// The digest of all entries: FNV-1a over the time, kind and bytes of each, in order. It is the same in every
    /// process.
    public var digest: UInt64 {
        var hash = FNV1a()
        var encoder = EventEncoder()
        for entry in entries {
            encoder.removeAll()
            entry.encode(into: &encoder)
            hash.add(contentsOf: encoder.bytes)
        }
        return hash.value
    }

    /// Returns the index of the first entry that differs from that of another history; `nil` if they are equal.
    public func firstDifference(from other: History) -> Int? {
        var left = EventEncoder()
        var right = EventEncoder()
        for (index, pair) in zip(entries, other.entries).enumerated() {
            left.removeAll()
            right.removeAll()
            pair.0.encode(into: &left)
            pair.1.encode(into: &right)
            if left.bytes != right.bytes { return index }
        }
        return entries.count == other.entries.count ? nil : min(entries.count, other.entries.count)
    }
}

extension History.Event: CustomStringConvertible {
    /// The event in one line, without texts of notes.
    public var description: String {
        switch self {
        case .network(let device, let link, let isOnline):
            "\(device) network \(link)\(isOnline ? "" : ", interface down")"
        case .device(let device, let state):
            "\(device) view outbox \(state.outbox)\(state.screen.text)"
                + state.rows.map { " \($0.name)=\($0.icon)\($0.isDeleted ? "/deleted" : "")" }.joined()
        case .connectionAttempt(let connection, let device): "\(device) connects, connection \(connection)"
        case .connectionEnded(let connection, let device): "\(device) connection \(connection) ended"
        case .request(let id, let actor, let method, let row, _, _, let connection):
            "\(actor) request \(id) \(method) \(row ?? "?")" + (connection.map { ", connection \($0)" } ?? "")
        case .named(let id, let row): "request \(id) is of \(row)"
        case .requestSent(let id, let bytes): "request \(id) sent, \(bytes) B"
        case .arrived(let id): "request \(id) arrived"
        case .serverResponded(let id, let status, let bytes, let revision):
            "request \(id) server responded \(status), \(bytes) B" + (revision.map { ", revision \($0)" } ?? "")
        case .responseReceived(let id, let status): "request \(id) response received \(status)"
        case .failed(let id): "request \(id) failed"
        case .fault(let index, let exchange, let point):
            "fault \(index) on request \(exchange)" + (point.map { " at \($0.rawValue)" } ?? "")
        case .commit(let device, let digest): "\(device) commit \(String(digest, radix: 16))"
        case .accepted(let device, let row): "\(device) accepted \(row)"
        case .belief(let device, let belief): "\(device) believes \(belief)"
        case .started(let device): "\(device) started"
        case .stopped(let device): "\(device) stopped"
        case .phase(let phase): "phase \(phase.rawValue)"
        case .step(let step): "step \(step) starts"
        case .mark(let mark): "mark \(mark)"
        case .missed(let step, let reason): "step \(step) missed: \(reason)"
        case .stepFailed(let step, let reason, let location): "step \(step) failed: \(location): \(reason)"
        case .late(let span): "late by \(TimeFormat.duration(span))"
        case .action(let actor, let action): "\(actor) \(action)"
        case .notice(let actor, let notice): "\(actor) \(notice)"
        case .server(let rows): "server" + rows.map { " \($0.name)=\($0.revision)" }.joined()
        case .hostPause(let span): "host paused for \(TimeFormat.duration(span))"
        case .aborted(let reason): "aborted: \(reason)"
        case .contents(let id, let contents): "request \(id) says \(contents)"
        case .writeResult(let id, let result): "request \(id): the response says \(result)"
        case .policy(let device, let policy):
            "\(device) policy: delays \(TimeFormat.duration(policy.firstDelay)) to "
                + "\(TimeFormat.duration(policy.longestDelay)), poll \(policy.poll.map { TimeFormat.duration($0) } ?? "none")"
        case .interface(let device, let isUp, let isMetered):
            "\(device) interface \(isUp ? "up" : "down")\(isMetered ? ", metered" : "")"
        case .world(let facts):
            "\(facts.isSimulated ? "simulated" : "live")\(facts.comparesBytes ? ", bytes are compared" : "")"
        case .bytesChanged(let device, let direction, let offset):
            "\(device) \(direction == .up ? "upload" : "download") changed after \(offset) B"
        }
    }
}
