package import Determinism

/// A reader of the values of an event, each with its name, in order: the digest, the trace and the JSON of a history are such
/// readers of one description (``History/Event/describe(to:)``). Nothing is allocated for the names.
package protocol FieldVisitor {
    /// Begins an event.
    mutating func begin(_ kind: History.Kind)
    /// Reads a name or another text.
    mutating func text(_ field: History.Field, _ value: String)
    /// Reads a text that may be missing.
    mutating func text(_ field: History.Field, _ value: String?)
    /// Reads a number.
    mutating func number(_ field: History.Field, _ value: Int)
    /// Reads a number that may be missing.
    mutating func number(_ field: History.Field, _ value: Int?)
    /// Reads a digest.
    mutating func digest(_ field: History.Field, _ value: UInt64)
    /// Reads one of two states, for which ``History/Field/words`` has words.
    mutating func flag(_ field: History.Field, _ value: Bool)
    /// Reads a duration.
    mutating func duration(_ field: History.Field, _ value: Nanoseconds)
    /// Reads a duration that may be missing.
    mutating func duration(_ field: History.Field, _ value: Nanoseconds?)
    /// Reads a value with cases.
    mutating func value(_ field: History.Field, _ value: some EncodedValue)
    /// Reads a value with cases that may be missing.
    mutating func value(_ field: History.Field, _ value: (some EncodedValue)?)
    /// Reads what a device shows.
    mutating func state(_ state: History.DeviceState)
    /// Reads the notes on the server.
    mutating func rows(_ rows: [History.ServerRow])
    /// Reads what a request says.
    mutating func contents(_ contents: RequestContents)
    /// Reads what the response to a write says.
    mutating func result(_ result: WriteResult)
}

extension History {
    /// A kind of event. The numbers are part of the digests of runs and never change.
    package enum Kind: UInt8, Sendable {
        case network = 1
        case view = 2
        case connect = 3
        case request = 4
        case named = 5
        case arrived = 6
        case responded = 7
        case received = 8
        case failed = 9
        case fault = 10
        case commit = 11
        case accepted = 12
        case belief = 13
        case started = 14
        case stopped = 15
        case phase = 16
        case step = 17
        case mark = 18
        case missed = 19
        case stepFailed = 20
        case late = 21
        case action = 22
        case server = 23
        case hostPause = 24
        case aborted = 25
        case disconnect = 26
        case sent = 27
        case notice = 28
        case contents = 40
        case policy = 41
        case interface = 42
        case world = 43
        case changed = 44
        case result = 45

        /// The name in traces and in JSON.
        package var name: String {
            switch self {
            case .stepFailed: "step-failed"
            case .hostPause: "host-pause"
            // Readers need not tell the actions of users from what else happens to an actor.
            case .notice: "action"
            default: "\(self)"
            }
        }
    }

    /// The name of a value of an event.
    package enum Field: Sendable {
        case action, actor, body, bytes, comparesBytes, connection, connectivity, digest, direction, exchange, fault,
            firstDelay, interface, isMetered, isUp, isSimulated, key, late, link, longestDelay, mark, method, note,
            offset,
            pause, phase, point, poll, reason, recoveryDelay, revision, status, step, usesMetered

        /// The name in traces; `nil` for a value that they do not have.
        package var traceName: String? {
            switch self {
            case .comparesBytes: "bytes"
            case .firstDelay: "first"
            case .isMetered: "metered"
            case .isUp: "state"
            case .isSimulated: "kind"
            case .late, .pause: "seconds"
            case .longestDelay: "longest"
            case .recoveryDelay, .usesMetered: nil
            default: "\(self)"
            }
        }

        /// The name in JSON; `nil` for a value that it does not have.
        package var jsonName: String? {
            switch self {
            case .body, .comparesBytes, .digest, .key, .poll, .recoveryDelay, .usesMetered: nil
            case .firstDelay: "first_delay_ms"
            case .isMetered: "metered"
            case .isUp: "up"
            case .isSimulated: "simulated"
            case .late: "late_ms"
            case .longestDelay: "longest_delay_ms"
            case .pause: "pause_ms"
            default: "\(self)"
            }
        }

        /// The words of a trace for a state that holds and for one that does not.
        package var words: (yes: String, no: String) {
            switch self {
            case .interface, .isUp: ("up", "down")
            case .isSimulated: ("simulated", "live")
            case .comparesBytes: ("compared", "unknown")
            default: ("yes", "no")
            }
        }

        /// The word of a trace for a missing value; `nil` if a trace leaves the value out.
        package var missing: String? {
            switch self {
            case .note: "-"
            case .poll: "none"
            default: nil
            }
        }
    }
}
