import Client
import Determinism
import NotesContract
import NotesService
import Testing
import Wire

/// Access tokens that expire: one refresh for each rejection, and nothing is lost.
@Suite struct TokenTests {
    private static let life: Int64 = 30

    /// A world with a device that has two notes and tokens of 30 s.
    private static func expiring() -> (World, Device, notes: [RecordID]) {
        var limits = NotesService.Limits()
        limits.accessSeconds = Int(life)
        let world = World(.strict, limits: limits)
        let device = world.addDevice("A")
        let object = JSONText.parse(world.server.execute("POST", "/api/tokens/").body)?.object
        device.tokens = SyncTokens(
            access: object?["access_token"]?.text ?? "", refresh: object?["refresh_token"]?.text ?? "")
        device.start()
        let notes = [device.create("n", "a"), device.create("m", "b")]
        world.settle()
        return (world, device, notes)
    }

    private static func isRefresh(_ target: String) -> Bool { target == NotesHTTP.refreshPath }

    private static func refreshes(_ device: Device) -> Int {
        device.sent.count { $0.request == "POST \(NotesHTTP.refreshPath)" }
    }

    @Test func anExpiredTokenIsRenewedOnceAndEverythingFollowsInOrder() {
        let (world, device, notes) = Self.expiring()
        world.run(for: .seconds(Self.life + 5))
        device.edit(notes[1], "b2")
        device.edit(notes[0], "a2")
        let created = device.create("k", "c")
        let before = device.tokens
        world.run(for: .seconds(2))
        #expect(world.server.writes.suffix(3).map(\.id) == [notes[1], notes[0], created])
        #expect(Self.refreshes(device) == 1 && device.tokens != before)
        #expect(device.status.outbox == 0 && device.status.pauseReason == nil)
        // A process that starts with the new token needs no other one.
        device.kill()
        device.start()
        world.run(for: .seconds(10))
        #expect(Self.refreshes(device) == 1 && device.texts == world.server.texts && world.problems == [])
    }

    @Test func aRejectedRefreshPausesTheQueueUntilTheUserSignsIn() {
        let (world, device, notes) = Self.expiring()
        world.run(for: .seconds(Self.life + 5))
        world.server.rules = [HostileRule("POST", .respond(.notes(400)), where: Self.isRefresh)]
        device.edit(notes[0], "a2")
        world.run(for: .seconds(600))
        #expect(Self.refreshes(device) == 1 && device.status.pauseReason?.contains("sign in") == true)
        #expect(device.status.outbox == 1 && device.texts[notes[0]] == "a2")
        let sent = device.sent.count
        device.edit(notes[1], "b2")
        world.run(for: .seconds(600))
        #expect(device.sent.count == sent, "nothing is sent meanwhile")
        device.sync()
        world.run(for: .seconds(600))
        #expect(
            Self.refreshes(device) == 2 && device.sent.count == sent + 2, "one refresh for each request of the user")
        world.server.rules = []
        device.sync()
        world.run(for: .seconds(10))
        #expect(world.server.texts == [notes[0]: "a2", notes[1]: "b2"] && device.status.outbox == 0)
    }

    @Test func aNewTokenThatIsRejectedLeadsToNoLoop() {
        let (world, device, notes) = Self.expiring()
        world.server.rules = [HostileRule(nil, .respond(.notes(401))) { !Self.isRefresh($0) }]
        device.edit(notes[0], "a2")
        world.run(for: .seconds(600))
        #expect(Self.refreshes(device) == 1 && device.status.pauseReason?.contains("new access token") == true)
        world.server.rules = []
        device.sync()
        world.run(for: .seconds(10))
        #expect(world.server.texts[notes[0]] == "a2")
    }

    @Test func aLostOrFailedRefreshIsRepeatedWithDelays() {
        let (world, device, notes) = Self.expiring()
        world.run(for: .seconds(Self.life + 5))
        world.server.rules = [
            HostileRule("POST", nth: 1...1, .cutResponse(after: 0), where: Self.isRefresh),
            HostileRule("POST", nth: 1...3, .respond(.notes(500)), where: Self.isRefresh),
        ]
        device.edit(notes[0], "a2")
        world.run(for: .seconds(60))
        #expect(world.server.texts[notes[0]] == "a2" && Self.refreshes(device) == 5)
        let times = device.sent.filter { $0.request.hasPrefix("POST /api/tokens") }.map(\.at.sinceStart.inSeconds)
        for (number, gap) in zip(times.dropFirst(2), times.dropFirst(1)).map({ $0 - $1 }).enumerated() {
            #expect(gap >= Double(1 << number) / 2, "pause \(number)")
        }
        #expect(device.status.pauseReason == nil && world.problems == [])
    }

    @Test func twoRejectionsOfOneTokenNeedOneRefresh() {
        let (world, device, notes) = Self.expiring()
        world.run(for: .seconds(Self.life + 5))
        // A large change has a connection of its own.
        device.edit(notes[0], String(repeating: "a", count: 20 << 10))
        device.edit(notes[1], "b2")
        world.run(for: .seconds(5))
        #expect(Self.refreshes(device) == 1)
        #expect(world.server.texts[notes[1]] == "b2" && world.server.texts[notes[0]]?.utf8.count == 20 << 10)
    }

    @Test func aSignInReplacesTheTokens() {
        let (world, device, notes) = Self.expiring()
        world.server.execute("DELETE", "/api/tokens/")
        device.edit(notes[0], "a2")
        world.run(for: .seconds(60))
        #expect(device.status.pauseReason?.contains("sign in") == true && Self.refreshes(device) == 1)
        device.input { machine, now in machine.setAuthorization(World.ada, at: now) }
        world.run(for: .seconds(5))
        #expect(world.server.texts[notes[0]] == "a2" && Self.refreshes(device) == 1)
    }
}
