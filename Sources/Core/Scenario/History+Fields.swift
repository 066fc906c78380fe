package import Determinism
internal import LinkModel

extension History.Event {
    /// Passes the kind and the values in order: the one description of an event.
    package func describe<Visitor: FieldVisitor>(to visitor: inout Visitor) {
        switch self {
        case .network(let device, let link, let isOnline):
            visitor.begin(.network)
            visitor.text(.actor, device)
            visitor.text(.link, link)
            visitor.flag(.interface, isOnline)
        case .device(let device, let state):
            visitor.begin(.view)
            visitor.text(.actor, device)
            visitor.state(state)
        case .connectionAttempt(let connection, let device):
            visitor.begin(.connect)
            visitor.text(.actor, device)
            visitor.number(.connection, connection)
        case .connectionEnded(let connection, let device):
            visitor.begin(.disconnect)
            visitor.text(.actor, device)
            visitor.number(.connection, connection)
        case .request(let id, let actor, let method, let row, let key, let digest, let connection):
            visitor.begin(.request)
            visitor.number(.exchange, id)
            visitor.text(.actor, actor)
            visitor.text(.method, method)
            visitor.text(.note, row)
            visitor.digest(.body, digest)
            visitor.text(.key, key)
            visitor.number(.connection, connection)
        case .named(let id, let row):
            visitor.begin(.named)
            visitor.number(.exchange, id)
            visitor.text(.note, row)
        case .requestSent(let id, let bytes):
            visitor.begin(.sent)
            visitor.number(.exchange, id)
            visitor.number(.bytes, bytes)
        case .arrived(let id):
            visitor.begin(.arrived)
            visitor.number(.exchange, id)
        case .serverResponded(let id, let status, let bytes, let revision):
            visitor.begin(.responded)
            visitor.number(.exchange, id)
            visitor.number(.status, status)
            visitor.number(.bytes, bytes)
            visitor.number(.revision, revision)
        case .responseReceived(let id, let status):
            visitor.begin(.received)
            visitor.number(.exchange, id)
            visitor.number(.status, status)
        case .failed(let id):
            visitor.begin(.failed)
            visitor.number(.exchange, id)
        case .fault(let index, let exchange, let point):
            visitor.begin(.fault)
            visitor.number(.fault, index)
            visitor.number(.exchange, exchange)
            visitor.value(.point, point)
        case .commit(let device, let digest):
            visitor.begin(.commit)
            visitor.text(.actor, device)
            visitor.digest(.digest, digest)
        case .accepted(let device, let row):
            visitor.begin(.accepted)
            visitor.text(.actor, device)
            visitor.text(.note, row)
        case .belief(let device, let belief):
            visitor.begin(.belief)
            visitor.text(.actor, device)
            visitor.value(.connectivity, belief)
        case .started(let device):
            visitor.begin(.started)
            visitor.text(.actor, device)
        case .stopped(let device):
            visitor.begin(.stopped)
            visitor.text(.actor, device)
        case .phase(let phase):
            visitor.begin(.phase)
            visitor.value(.phase, phase)
        case .step(let step):
            visitor.begin(.step)
            visitor.number(.step, step)
        case .mark(let mark):
            visitor.begin(.mark)
            visitor.text(.mark, mark)
        case .missed(let step, let reason):
            visitor.begin(.missed)
            visitor.number(.step, step)
            visitor.value(.reason, reason)
        case .stepFailed(let step, let reason, let location):
            visitor.begin(.stepFailed)
            visitor.number(.step, step)
            visitor.value(.reason, LocatedReason(reason: reason, location: location))
        case .late(let span):
            visitor.begin(.late)
            visitor.duration(.late, span)
        case .action(let actor, let action):
            visitor.begin(.action)
            visitor.text(.actor, actor)
            visitor.value(.action, action)
        case .notice(let actor, let notice):
            visitor.begin(.notice)
            visitor.text(.actor, actor)
            visitor.value(.action, notice)
        case .server(let rows):
            visitor.begin(.server)
            visitor.rows(rows)
        case .hostPause(let span):
            visitor.begin(.hostPause)
            visitor.duration(.pause, span)
        case .aborted(let reason):
            visitor.begin(.aborted)
            visitor.value(.reason, reason)
        case .contents(let id, let contents):
            visitor.begin(.contents)
            visitor.number(.exchange, id)
            visitor.contents(contents)
        case .writeResult(let id, let result):
            visitor.begin(.result)
            visitor.number(.exchange, id)
            visitor.result(result)
        case .policy(let device, let policy):
            visitor.begin(.policy)
            visitor.text(.actor, device)
            visitor.duration(.firstDelay, policy.firstDelay)
            visitor.duration(.longestDelay, policy.longestDelay)
            visitor.duration(.poll, policy.poll)
            visitor.duration(.recoveryDelay, policy.recoveryDelay)
            visitor.flag(.usesMetered, policy.usesMeteredInterfaces)
        case .interface(let device, let isUp, let isMetered):
            visitor.begin(.interface)
            visitor.text(.actor, device)
            visitor.flag(.isUp, isUp)
            visitor.flag(.isMetered, isMetered)
        case .world(let facts):
            visitor.begin(.world)
            visitor.flag(.isSimulated, facts.isSimulated)
            visitor.flag(.comparesBytes, facts.comparesBytes)
        case .bytesChanged(let device, let direction, let offset):
            visitor.begin(.changed)
            visitor.text(.actor, device)
            visitor.value(.direction, direction)
            visitor.number(.offset, offset)
        }
    }
}

/// A reason with the location of its step, which is not part of the digest.
private struct LocatedReason: EncodedValue {
    let reason: History.Reason
    let location: SourceLocation

    package var text: String { "\(location): \(reason)" }

    package func encode(into encoder: inout EventEncoder) { reason.encode(into: &encoder) }
}

extension EventEncoder: FieldVisitor {
    package mutating func begin(_ kind: History.Kind) { begin(kind.rawValue) }

    package mutating func text(_ field: History.Field, _ value: String) { add(value) }

    package mutating func text(_ field: History.Field, _ value: String?) { add(value) }

    package mutating func number(_ field: History.Field, _ value: Int) { add(value) }

    package mutating func number(_ field: History.Field, _ value: Int?) { add(value) }

    package mutating func digest(_ field: History.Field, _ value: UInt64) { add(value) }

    package mutating func flag(_ field: History.Field, _ value: Bool) { add(value) }

    package mutating func duration(_ field: History.Field, _ value: Nanoseconds) { add(value) }

    package mutating func duration(_ field: History.Field, _ value: Nanoseconds?) { add(value) }

    package mutating func value(_ field: History.Field, _ value: some EncodedValue) { add(value) }

    package mutating func value(_ field: History.Field, _ value: (some EncodedValue)?) { add(value) }

    package mutating func state(_ state: History.DeviceState) {
        add(state.outbox)
        add(state.rows.count)
        for row in state.rows { add(digestOf: row) }
        state.screen.encode(into: &self)
    }

    package mutating func rows(_ rows: [History.ServerRow]) {
        add(rows.count)
        for row in rows {
            add(row.user)
            add(row.name)
            add(row.revision)
            add(row.title)
            add(row.text)
        }
    }

    package mutating func contents(_ contents: RequestContents) { contents.encode(into: &self) }

    package mutating func result(_ result: WriteResult) { result.encode(into: &self) }
}
