internal import Wire

/// The calendar of a place: the offset of its clocks from UTC over time.
///
/// A calendar day begins at local midnight, so a day on which clocks change has 23 or 25 hours.
public struct FieldCalendar: Hashable, Sendable {
    /// The beginning of an offset.
    public struct Change: Hashable, Sendable {
        /// The milliseconds since 1970 (UTC) from which the offset applies.
        public let start: Int
        /// The offset in milliseconds; positive to the east of Greenwich.
        public let offset: Int

        /// Creates the beginning of an offset.
        public init(start: Int, offset: Int) {
            self.start = start
            self.offset = offset
        }
    }

    private let offset: Int
    private let changes: [Change]

    /// Creates a calendar.
    ///
    /// - Parameters:
    ///   - offset: The offset before the first change, in milliseconds.
    ///   - changes: The later offsets.
    public init(offset: Int, changes: [Change] = []) {
        self.offset = offset
        self.changes = changes.sorted { $0.start < $1.start }
    }

    /// The calendar of a payload without one.
    public static let utc = FieldCalendar(offset: 0)

    private static let dayMilliseconds = 86_400_000

    /// Returns the number of the local calendar day at a time: the days since 1 January 1970.
    public func day(of milliseconds: Int) -> Int {
        let offset = changes.last { $0.start <= milliseconds }?.offset ?? offset
        return SubmissionPeriod.index(milliseconds + offset, Self.dayMilliseconds)
    }

    /// The greatest offset in milliseconds, in both directions.
    static let offsetMax = dayMilliseconds
    /// The maximum number of changes.
    public static let changesMax = 1000

    /// Reads the member `zone` of a payload; `nil` if it is invalid. A payload without one is in UTC.
    init?(_ json: JSONValue) {
        func offset(_ json: JSONValue) -> Int? {
            guard case .integer(let number) = json, let offset = Int(exactly: number),
                (-Self.offsetMax...Self.offsetMax).contains(offset)
            else { return nil }
            return offset
        }
        guard json != .null else {
            self = .utc
            return
        }
        guard let first = offset(json["offset"]), case .array(let elements) = json["changes"],
            elements.count <= Self.changesMax
        else { return nil }
        let changes = elements.compactMap { element -> Change? in
            guard case .integer(let start) = element["start"], start >= 0, let start = Int(exactly: start) else {
                return nil
            }
            return offset(element["offset"]).map { Change(start: start, offset: $0) }
        }
        guard changes.count == elements.count else { return nil }
        self.init(offset: first, changes: changes)
    }

    var json: JSONValue {
        [
            "offset": .integer(Int64(offset)),
            "changes": .array(
                changes.map { ["start": .integer(Int64($0.start)), "offset": .integer(Int64($0.offset))] }),
        ]
    }

    /// Returns whether something that was read at a time is of another calendar day than now.
    public func isStale(readAt read: Int, now: Int) -> Bool { day(of: read) != day(of: now) }
}

/// A submission period by the server's clock. Periods have one length, and begin at multiples of it since 1970.
public struct SubmissionPeriod: Hashable, Sendable {
    /// The beginning in milliseconds since 1970.
    public let start: Int
    /// The end, which is the beginning of the next one.
    public let end: Int

    /// Creates the period that contains a time.
    ///
    /// - Precondition: `length` is positive.
    public init(containing milliseconds: Int, length: Int) {
        start = Self.index(milliseconds, length) * length
        end = start + length
    }

    /// Returns a quotient that is rounded down.
    static func index(_ value: Int, _ length: Int) -> Int {
        let quotient = value / length
        return value % length < 0 ? quotient - 1 : quotient
    }
}
