import Client
import Determinism
import Expense
import Testing

@Suite struct ConnectivityEstimateTests {
    private var random = RandomStream(seed: 1, "test")

    private func time(_ seconds: Int64) -> Instant { .start + .seconds(seconds) }

    @Test mutating func threeFailuresWithinTenSecondsMeanOffline() {
        var belief = ConnectivityEstimate()
        for second: Int64 in [0, 1, 2] { belief.requestFailed(at: time(second), random: &random) }
        #expect(!belief.isOffline)
        belief.requestFailed(at: time(10), random: &random)
        #expect(belief.isOffline && belief.needsProbe)
    }

    @Test mutating func twoFailuresDoNotMeanOfflineHoweverLongTheyTake() {
        var belief = ConnectivityEstimate()
        for second: Int64 in [0, 60] { belief.requestFailed(at: time(second), random: &random) }
        #expect(!belief.isOffline)
    }

    @Test mutating func delaysOfProbesDoubleUpToAMinute() throws {
        var belief = ConnectivityEstimate()
        for second: Int64 in [0, 5, 10] { belief.requestFailed(at: time(second), random: &random) }
        var now = time(10)
        for (base, longest): (Int64, Int64) in [(5, 6), (10, 12), (20, 24), (40, 48), (48, 60), (48, 60)] {
            let at = try #require(belief.probeAt)
            #expect((Nanoseconds.seconds(base)...Nanoseconds.seconds(longest)).contains(at - now))
            now = at
            belief.probeSent()
            #expect(belief.probeAt == nil)
            belief.requestFailed(at: now, random: &random)
        }
        belief.responseReceived()
        #expect(!belief.isOffline && belief.probeAt == nil)
    }

    @Test mutating func anInterfaceThatComesUpIsTakenForAConnection() {
        var belief = ConnectivityEstimate()
        for second: Int64 in [0, 5, 10] { belief.requestFailed(at: time(second), random: &random) }
        belief.interfaceChanged(isUp: false)
        #expect(belief.isOffline && !belief.needsProbe)
        belief.interfaceChanged(isUp: true)
        #expect(!belief.isOffline)
    }
}
