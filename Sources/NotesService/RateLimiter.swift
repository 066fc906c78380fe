internal import Synchronization

/// How often each user may ask: a bucket of a second's worth that fills steadily.
final class RateLimiter: Sendable {
    private struct Bucket {
        var tokens: Double
        var filled: Int
    }

    private let perSecond: Double
    private let buckets = Mutex<[String: Bucket]>([:])

    init(perSecond: Double) { self.perSecond = perSecond }

    /// Takes one, or says how many seconds there will be none.
    ///
    /// - Parameter now: Monotonic milliseconds.
    func secondsToWait(_ user: String, at now: Int) -> Int? {
        buckets.withLock { buckets in
            let full = max(1, perSecond)
            var bucket = buckets[user] ?? Bucket(tokens: full, filled: now)
            bucket.tokens = min(full, bucket.tokens + Double(max(0, now - bucket.filled)) / 1000 * perSecond)
            bucket.filled = max(bucket.filled, now)
            defer { buckets[user] = bucket }
            guard bucket.tokens < 1 else {
                bucket.tokens -= 1
                return nil
            }
            return Int(min(86_400, max(1, ((1 - bucket.tokens) / perSecond).rounded(.up))))
        }
    }
}

/// When what is old is looked for: with the first write, and then at most once a minute.
final class CleanupSchedule: Sendable {
    private let last = Mutex<Int?>(nil)

    /// - Parameter now: Milliseconds of ``ServedTime``, which a lever may set back.
    func isDue(at now: Int) -> Bool {
        last.withLock { last in
            if let last, abs(now - last) < 60_000 { return false }
            last = now
            return true
        }
    }
}
