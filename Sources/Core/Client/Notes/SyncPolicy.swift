public import Determinism

/// Delays, limits and rules of a sync client. The default values are those that the client publishes.
public struct SyncPolicy: Hashable, Sendable {
    /// The network interfaces on which the client may send.
    public enum AllowedInterfaces: String, Hashable, Sendable, CaseIterable {
        /// Every interface.
        case any
        /// Interfaces without a charge for data, such as Wi-Fi.
        case unmetered
    }

    /// The order in which changes are sent. Those of one record are always sent in their own order.
    public enum ChangeOrder: Hashable, Sendable {
        /// The oldest first; a change that fails delays those of its record only.
        case oldestFirst
        /// The newest first.
        case newestFirst
        /// The oldest first; a change that fails delays all later ones.
        case strict
    }

    /// The effect of the response to a change on edits that were made after it.
    public enum LaterEdits: Hashable, Sendable {
        /// They stay, are shown and will be sent.
        case kept
        /// They will be sent, but the response's content is shown.
        case hidden
        /// The response's content replaces them.
        case dropped
    }

    /// The time at which what a request depends on is committed.
    public enum Durability: Hashable, Sendable {
        /// Before the request.
        case beforeSending
        /// When no exchange is in flight: faster, but a client that is killed forgets what it has sent.
        case afterExchanges
    }

    /// The time at which the position in the index is stored.
    public enum Checkpoint: Hashable, Sendable {
        /// After the records that are listed before it have been fetched and stored.
        case afterRecords
        /// After the index has been fetched: a client that is killed never fetches the records that it has not yet.
        case afterIndex
    }

    /// The records that are fetched after each index.
    public enum Reads: Hashable, Sendable {
        /// Those with another revision than the known one.
        case changedRecords
        /// All.
        case allRecords
    }

    /// The delay after the first failure.
    public var firstDelay: Nanoseconds
    /// The longest delay. Delays double up to it; each is then reduced at random to between 50 % and 100 %.
    public var longestDelay: Nanoseconds
    /// The interval between index fetches.
    public var poll: Nanoseconds
    /// Attempts per entry that end in a server error (500) before the entry is parked.
    public var serverErrorsMax: Int
    /// The longest random delay of the first request after an interface has come up, so that many clients do not send
    /// at once.
    public var recoverySpread: Nanoseconds
    /// The longest `Retry-After` that is respected; a longer one is reduced to it.
    public var retryAfterMax: Nanoseconds
    /// The number of bytes from which a change is large: large changes are sent on a connection of their own, and only
    /// while no smaller one is ready.
    public var largeBytes: Int
    /// The time for which a small change waits for the response to a read in flight; then it is sent beside it.
    public var readPatience: Nanoseconds
    /// The network interfaces on which the client may send.
    public var interfaces: AllowedInterfaces
    /// The network interfaces among these on which the client may transfer attachments.
    public var attachmentInterfaces: AllowedInterfaces
    /// Whether delays are reduced at random.
    public var hasJitter = true
    /// The order in which changes are sent.
    public var order = ChangeOrder.oldestFirst
    /// The greatest age of the index with which changes are sent; `nil` if they do not wait for it.
    public var indexAgeMax: Nanoseconds?
    /// The records that are fetched after each index.
    public var reads = Reads.changedRecords
    /// The time at which the position in the index is stored.
    public var checkpoint = Checkpoint.afterRecords
    /// The time at which what a request depends on is committed.
    public var durability = Durability.beforeSending
    /// The effect of the response to a change on later edits.
    public var laterEdits = LaterEdits.kept
    /// The kinds of changes, by their stored names, that stay in the outbox and are not sent: a later version or another part
    /// of the app does that. Other kinds that the client does not know are parked.
    public var heldKinds: Set<String> = []
    /// Whether edits of a record in conflict wait until the user has resolved the conflict.
    public var holdsConflicts = true
    /// Whether a pause that the server has requested (`Retry-After`) outlasts a recovery of the network and a sync by the
    /// user.
    public var keepsPauses = true
    /// Whether a list with the contents of many records may be read in place of these records.
    public var readsLists = true
    /// Whether requests are sent whatever the state of the interface is, where the system does not report it reliably.
    public var ignoresInterface = false

    /// Creates a policy.
    public init(
        firstDelay: Nanoseconds = .seconds(1), longestDelay: Nanoseconds = .seconds(60),
        poll: Nanoseconds = .seconds(60), serverErrorsMax: Int = 5, recoverySpread: Nanoseconds = .seconds(4),
        retryAfterMax: Nanoseconds = .seconds(86_400), largeBytes: Int = 16 << 10,
        readPatience: Nanoseconds = .milliseconds(500),
        interfaces: AllowedInterfaces = .any, attachmentInterfaces: AllowedInterfaces = .any
    ) {
        self.firstDelay = firstDelay
        self.longestDelay = longestDelay
        self.poll = poll
        self.serverErrorsMax = serverErrorsMax
        self.recoverySpread = recoverySpread
        self.retryAfterMax = retryAfterMax
        self.largeBytes = largeBytes
        self.readPatience = readPatience
        self.interfaces = interfaces
        self.attachmentInterfaces = attachmentInterfaces
    }

    /// Returns the greatest number of attempts of the whole queue during an outage:
    /// 2 + ceil(log2(longest / first)) + duration / (longest / 2).
    public func attemptsMax(duringOutage duration: Nanoseconds) -> Int {
        var doublings = 0
        var delay = max(1, firstDelay.count)
        while delay < longestDelay.count {
            let (next, overflow) = delay.multipliedReportingOverflow(by: 2)
            delay = overflow ? .max : next
            doublings += 1
        }
        let half = max(1, longestDelay.count / 2)
        return 2 + doublings + Int(clamping: max(0, duration.count) / half)
    }

    /// Returns whether changes of a kind stay in the outbox.
    func holds(_ kind: OutboxEntry.Kind) -> Bool {
        if case .unknown(let name) = kind { heldKinds.contains(name) } else { false }
    }

    /// Returns the delay after a number of failures in a row.
    func delay(afterFailures failures: Int, random: inout RandomStream) -> Nanoseconds {
        Backoff(first: firstDelay, longest: longestDelay, hasJitter: hasJitter)
            .delay(afterFailures: failures, random: &random)
    }
}

/// The client's belief about its connectivity.
public enum Connectivity: Hashable, Sendable {
    /// No exchange has ended yet.
    case unknown
    /// The last exchange reached the server.
    case online
    /// The interface is down.
    case interfaceDown
    /// The policy does not allow the interface.
    case interfaceNotAllowed
    /// The last exchange failed; a probe decides whether the path or one request is the cause.
    case suspected
    /// Exchanges fail; only probes are sent, with growing delays.
    case unreachable(failures: Int)
}
