public import Determinism

/// What the exchanges so far show of the path to the server and of the records.
public struct PathEstimate: Hashable, Sendable {
    /// The size up to which a response shows the round trip; larger ones show the rate.
    private static let smallBytes = 2 << 10
    /// The estimates before the first response: a mobile network.
    private static let initialRoundTrip = Nanoseconds.milliseconds(100)
    private static let initialRate = 100_000.0
    private static let initialRecordBytes = 512.0

    private var observedRoundTrip: Double?
    private var observedRate: Double?
    private var observedRecordBytes: Double?

    /// Creates an estimate without observations.
    public init() {}

    /// The seconds between a small request and its response.
    public var roundTrip: Double { observedRoundTrip ?? Self.initialRoundTrip.inSeconds }
    /// The bytes of a response per second.
    public var rate: Double { observedRate ?? Self.initialRate }
    /// The bytes of a record.
    public var recordBytes: Double { observedRecordBytes ?? Self.initialRecordBytes }

    /// Records a response of a size.
    public mutating func record(bytes: Int, in duration: Nanoseconds) {
        // A clock may not have proceeded.
        let seconds = max(duration.inSeconds, 0.0001)
        if bytes <= Self.smallBytes {
            observedRoundTrip = Self.mean(observedRoundTrip, seconds)
        } else {
            // At least a tenth of the time is taken for that of the bytes.
            observedRate = Self.mean(observedRate, Double(bytes) / max(seconds - roundTrip, seconds / 10))
        }
    }

    /// Records the size of a record.
    public mutating func record(recordBytes bytes: Int) {
        observedRecordBytes = Self.mean(observedRecordBytes, Double(bytes))
    }

    private static func mean(_ old: Double?, _ new: Double) -> Double { old.map { ($0 + new) / 2 } ?? new }
}

/// The way in which records are read.
public enum ReadPlan: Hashable, Sendable {
    /// A list with the contents.
    case list
    /// A request for each record, some of them at once.
    case records(atOnce: Int)

    /// The number of reads that are never replaced by a list: what a list that breaks off has transferred is transferred
    /// again, a read is not.
    public static let readsMin = 16
    /// The maximum number of reads at once, as browsers have it for one host over HTTP/1.1.
    public static let readsAtOnceMax = 6
    /// The bytes of the heads of a request and its response.
    private static let headBytes = 500.0

    /// Returns the way that is expected to take less time.
    ///
    /// - Parameters:
    ///   - missing: The number of records to read.
    ///   - listed: The number of records that the list would have.
    public static func fastest(missing: Int, listed: Int, _ path: PathEstimate) -> ReadPlan {
        let atOnce = readsAtOnce(of: missing)
        guard missing > readsMin else { return .records(atOnce: atOnce) }
        let bytes = path.recordBytes
        let list = path.roundTrip + Double(max(listed, missing)) * bytes / path.rate
        // New connections take one round trip.
        let roundTrips = (Double(missing) / Double(atOnce)).rounded(.up) + 1
        let reads = roundTrips * path.roundTrip + Double(missing) * (bytes + headBytes) / path.rate
        return list < reads ? .list : .records(atOnce: atOnce)
    }

    /// Returns the number of reads that are sent at once.
    public static func readsAtOnce(of missing: Int) -> Int { missing > readsAtOnceMax ? readsAtOnceMax : 1 }
}
