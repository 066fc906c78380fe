internal import Determinism

/// The deadlines of an exchange on its connection, which move with the bytes in both directions (``HTTPTimeouts``).
struct HTTPExchangeProgress: Sendable {
    private struct Window {
        var end: Instant
        var byteCount: Int64 = 0
    }

    private let timeouts: HTTPTimeouts
    private let requestBytes: Int64
    /// Bytes of the request that the kernel has not accepted.
    private var unacceptedBytes: Int64
    private var responseBytes: Int64 = 0
    /// The bytes that the response's body will have, as far as known.
    private var announcedBytes: Int64 = 0
    /// The deadline for the next byte.
    private var stallDeadline: Instant
    /// If the response began before the whole request was accepted: the time before which ``HTTPTimeouts/idle`` does
    /// not expire.
    private var idleStart = Instant.start
    /// The current window of a large exchange while bytes flow.
    private var window: Window?

    /// Starts with the request's first write.
    init(requestBytes: Int, timeouts: HTTPTimeouts, at now: Instant) {
        self.timeouts = timeouts
        self.requestBytes = Int64(requestBytes)
        unacceptedBytes = Int64(requestBytes)
        stallDeadline = now + timeouts.upload
        startWindow(at: now)
    }

    /// Whether the exchange has no limit on its total time.
    var isLarge: Bool {
        requestBytes.addingSaturating(max(responseBytes, announcedBytes)) >= timeouts.largeExchangeBytes
    }

    /// The time of the next ``timeout(at:)``.
    var deadline: Instant { min(stallDeadline, window?.end ?? .never) }

    /// Records bytes of the request that the kernel has accepted.
    mutating func recordAccepted(_ count: Int, at now: Instant) {
        guard count > 0 else { return }
        unacceptedBytes -= Int64(count)
        window?.byteCount += Int64(count)
        if unacceptedBytes > 0 {
            stallDeadline = now + timeouts.upload
        } else {
            stallDeadline = now + timeouts.firstByte + sendBufferTime
            if responseBytes > 0 { idleStart = stallDeadline }
            window = nil
        }
    }

    /// Records bytes of the response.
    mutating func recordReceived(_ count: Int, at now: Instant) {
        guard count > 0 else { return }
        responseBytes += Int64(count)
        stallDeadline = unacceptedBytes > 0 ? now + timeouts.upload : max(now + timeouts.idle, idleStart)
        startWindow(at: now)
        window?.byteCount += Int64(count)
    }

    /// Records the length of the response's body.
    mutating func recordLength(_ count: Int64, at now: Instant) {
        announcedBytes = count
        startWindow(at: now)
    }

    /// Returns the timeout that has expired; begins the next window if the current one has ended with enough bytes.
    mutating func timeout(at now: Instant) -> HTTPClientError.Timeout? {
        if stallDeadline <= now {
            if unacceptedBytes > 0 { return .upload }
            return responseBytes == 0 ? .firstByte : .idle
        }
        guard let ended = window, ended.end <= now else { return nil }
        let bytesMin = timeouts.minimumRate.scaledSaturating(by: timeouts.rateWindow.count, over: 1_000_000_000)
        if ended.byteCount < bytesMin { return .rate }
        window = Window(end: now + timeouts.rateWindow)
        return nil
    }

    private mutating func startWindow(at now: Instant) {
        guard window == nil, isLarge, timeouts.minimumRate > 0, timeouts.rateWindow > .zero else { return }
        window = Window(end: now + timeouts.rateWindow)
    }

    /// The time that the bytes in the send buffer take at the minimum rate.
    private var sendBufferTime: Nanoseconds {
        guard requestBytes > HTTPClientMachine.writeBytesMax, timeouts.minimumRate > 0 else { return .zero }
        let byteCount = min(requestBytes, timeouts.sendBufferBytesMax)
        return Nanoseconds(byteCount.scaledSaturating(by: 1_000_000_000, over: timeouts.minimumRate))
    }
}
