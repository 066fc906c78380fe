import ConfigFiles
import Determinism
import Testing

@testable import CommandSupport
@testable import slowlane

@Suite struct TimelinePlaybackTests {
    private let start = ContinuousClock.now

    private func playback() throws -> TimelinePlayback {
        TimelinePlayback(try ProfileCatalogue.timeline("0s: edge, 20s: 3g"), startingAt: start)
    }

    @Test func thePositionFollowsTheClock() throws {
        #expect(try playback().position(at: start + .seconds(7)) == .seconds(7))
    }

    @Test func aPausedTimelineKeepsItsPosition() throws {
        var playback = try playback()
        playback.pause(at: start + .seconds(5))
        #expect(playback.position(at: start + .seconds(60)) == .seconds(5))
        playback.resume(from: playback.position(at: start + .seconds(60)), at: start + .seconds(60))
        #expect(playback.position(at: start + .seconds(62)) == .seconds(7))
    }

    @Test func anAbsoluteStartGivesThePosition() throws {
        let file = try ProfileCatalogue.timeline("0s: edge, 20s: 3g")
        let early = TimelinePlayback(file, from: .seconds(-5), startingAt: start)
        #expect(early.position(at: start + .seconds(7)) == .seconds(2))
        let late = TimelinePlayback(file, from: .seconds(13), startingAt: start)
        #expect(late.position(at: start + .seconds(7)) == .seconds(20))
    }

    @Test func aSeekMovesThePosition() throws {
        var playback = try playback()
        playback.resume(from: .seconds(20), at: start + .seconds(3))
        #expect(playback.position(at: start + .seconds(4)) == .seconds(21))
    }
}
