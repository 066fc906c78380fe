internal import Synchronization

/// A limit on the requests per second of each user: a token bucket that holds one second's worth.
final class RateLimiter: Sendable {
    private struct Bucket {
        var tokens: Double
        var lastRefill: Int
    }

    private let perSecond: Double
    private let buckets = Mutex<[String: Bucket]>([:])

    init(perSecond: Double) { self.perSecond = perSecond }

    /// Takes a token and returns `nil`, or returns the seconds until there is one.
    ///
    /// - Parameter now: Monotonic milliseconds.
    func secondsToWait(_ user: String, at now: Int) -> Int? {
        buckets.withLock { buckets in
            let full = max(1, perSecond)
            var bucket = buckets[user] ?? Bucket(tokens: full, lastRefill: now)
            bucket.tokens = min(full, bucket.tokens + Double(max(0, now - bucket.lastRefill)) / 1000 * perSecond)
            bucket.lastRefill = max(bucket.lastRefill, now)
            defer { buckets[user] = bucket }
            guard bucket.tokens < 1 else {
                bucket.tokens -= 1
                return nil
            }
            return Int(min(86_400, max(1, ((1 - bucket.tokens) / perSecond).rounded(.up))))
        }
    }
}
