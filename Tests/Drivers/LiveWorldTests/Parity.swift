import Determinism
import Impairment
import Scenario

/// The comparison of a run in virtual time with the same run in real time.
///
/// Equal are, for each device and writer, the sequence of requests with their notes and statuses in the script phase, and
/// their times within a tolerance. What may differ: the order of events of different actors, digests of commits (dates
/// of notes come from the clock), the number of polls, everything after the links are restored, and, of a response that
/// a fault cuts short, whether the proxy has read the rest of it from the server.
enum Parity {
    /// The tolerance of times: the loopback interface, commits with `fsync` and the scheduling of threads take time, also
    /// for each request of an actor before.
    static func tolerance(after requests: Int) -> Nanoseconds { .milliseconds(600 + 20 * Int64(requests)) }

    struct Request {
        let time: Nanoseconds
        /// The method, the note and the statuses.
        var exchange: String
        /// The faults. A fault of the instant in which the client reads the response may be recorded before or after it.
        var faults = ""
        /// The bytes of the body of a request for a note.
        var sent = ""
        /// The bytes of the body, and the revision, of the response; the body of a probe has the uptime.
        var received = ""
        /// Whether a fault has cut the response short.
        var isCut = false

        var text: String { exchange + faults }

        var content: String { isCut ? sent : sent + received }
    }

    /// The requests of each actor in the script phase.
    static func requests(_ history: History) -> [String: [Request]] {
        var found: [String: [Request]] = [:]
        var places: [Int: (actor: String, index: Int)] = [:]
        var isHealed = false
        for entry in history.entries {
            switch entry.event {
            case .phase(.restore): isHealed = true
            case .request(let id, let actor, let method, let row, _, _, _) where !isHealed:
                places[id] = (actor, found[actor, default: []].count)
                found[actor, default: []].append(Request(time: entry.time, exchange: "\(method) \(row ?? "index")"))
            case .named(let id, let row):
                guard let place = places[id] else { continue }
                found[place.actor]?[place.index].exchange += " (\(row))"
            case .requestSent(let id, let bytes):
                guard let place = places[id] else { continue }
                found[place.actor]?[place.index].sent += " \(bytes) B up"
            case .serverResponded(let id, _, let bytes, let revision):
                guard let place = places[id], found[place.actor]?[place.index].exchange.contains(" index") == false
                else {
                    continue
                }
                found[place.actor]?[place.index].received += " \(bytes) B down, revision \(revision ?? 0)"
            case .responseReceived(let id, let status):
                guard let place = places[id] else { continue }
                found[place.actor]?[place.index].exchange += " \(status)"
            case .fault(_, let id, let point):
                guard let place = places[id] else { continue }
                found[place.actor]?[place.index].faults += " lost"
                if point == .at(.afterResponseHead) || point == .at(.midResponse) {
                    found[place.actor]?[place.index].isCut = true
                }
            default: break
            }
        }
        return found
    }

    /// The lateness of one order from which requests and times are not compared.
    static let latenessMax = Nanoseconds.milliseconds(200)

    /// Whether the host was paused, or orders were late.
    static func wasLate(_ history: History) -> Bool {
        history.entries.contains {
            switch $0.event {
            case .hostPause: true
            case .late(let span): span > latenessMax
            default: false
            }
        }
    }

    /// Returns the first difference between the requests of two runs; `nil` if there is none.
    static func difference(_ simulated: History, _ live: History) -> String? {
        let (left, right) = (requests(simulated), requests(live))
        for actor in Set(left.keys).union(right.keys).sorted() {
            let (expected, actual) = (left[actor] ?? [], right[actor] ?? [])
            for (index, (one, other)) in zip(expected, actual).enumerated() {
                if one.text != other.text || one.content != other.content {
                    return "\(actor): \(one.text)\(one.content) at \(one.time), live \(other.text)\(other.content)"
                }
                let distance = one.time < other.time ? other.time - one.time : one.time - other.time
                if distance > tolerance(after: index) {
                    return "\(actor): \(one.text) at \(one.time), live at \(other.time)"
                }
            }
            if expected.count != actual.count {
                return "\(actor): \(expected.map(\.text)), live \(actual.map(\.text))"
            }
        }
        return nil
    }
}
