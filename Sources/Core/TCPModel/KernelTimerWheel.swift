internal import Determinism

/// The resolution of kernel timers: a timer may fire late, never early.
///
/// Linux counts time in jiffies (here `CONFIG_HZ=250`: 4 ms) and since 4.8 keeps long timers in coarser wheels
/// (`kernel/time/timer.c`: `LVL_CLK_SHIFT` 3, 64 buckets a level), so that a timer is late by up to 4 ms below 252 ms,
/// 32 ms below 2 s, 256 ms below 16 s, 2 s below 129 s. After an outage this determines when TCP retransmits.
enum KernelTimerWheel {
    /// One jiffy.
    static let jiffy = Nanoseconds.milliseconds(4)
    /// A level holds timers shorter than this many of its own ticks (`LVL_START`: 63 << (3 * level)).
    private static let ticksMax: Int64 = 63

    /// Returns the expiry of a timer of `span` armed at `now`, on a kernel whose clock is `phase` ahead.
    static func expiry(_ span: Nanoseconds, armedAt now: Instant, phase: Nanoseconds) -> Instant {
        let jiffy = Self.jiffy.count
        let armed = (now.sinceStart.count + phase.count) / jiffy
        let ticks = (span.count + jiffy - 1) / jiffy
        var shift: Int64 = 0
        while ticks >= ticksMax << (3 * shift) && shift < 8 { shift += 1 }
        let expiry = (((armed + ticks) >> (3 * shift)) + 1) << (3 * shift)
        return Instant(Nanoseconds(expiry * jiffy - phase.count))
    }
}
