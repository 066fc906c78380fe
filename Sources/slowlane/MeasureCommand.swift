internal import ArgumentParser
internal import ConfigFiles
internal import Foundation
internal import LinkModel
internal import NIOCore
internal import NIOPosix
internal import ProxyServer
internal import TCPModel

/// `slowlane measure`.
struct MeasureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "measure",
        abstract: "Measures profiles on this machine: an echo server behind each, transfers through real sockets.",
        discussion: """
            Each row is one transfer on a new connection, from connect() to the last byte of the echo: the time that \
            follows from the profile's figures by arithmetic, and the median of --trials on the clock (seven times as \
            many below 100 ms). A row is good within 3 % or 2 ms; exit status 1 if one is not.

            Example: slowlane measure edge 3g wifi
            """)

    @Argument(help: "Built-in profiles' names or paths to files.")
    var profiles: [String]

    @Option(help: "How often each transfer is made.")
    var trials = 3

    func validate() throws {
        guard (1...1000).contains(trials) else { throw ValidationError("--trials is not within 1 to 1000") }
    }

    /// Sizes of the echoed transfers in bytes: both fit into TCP's initial window of ten segments.
    private static let sizes = [200, 10_240]

    /// Transfers expected to be shorter than this are made so many times as often.
    private static let shortMax = Nanoseconds.milliseconds(100)
    private static let shortFactor = 7

    func run() async throws {
        let console = Console()
        let profiles = try profiles.map { try Profile.forArgument($0, console) }
        for profile in profiles where profile.conditions.up.loss == .one || profile.conditions.down.loss == .one {
            console.print("error: nothing ever gets through '\(profile.id)'", to: .progress)
            throw ExitStatus.usage
        }
        let group = MultiThreadedEventLoopGroup.singleton
        let echo = try await EchoServer.start(on: group)
        console.print(
            "measuring \(profiles.map(\.id).joined(separator: ", ")), \(trials) times each ...", to: .progress)

        var rows = [["PROFILE", "ECHO OF", "EXPECTED", "MEASURED", "OFF BY", ""]]
        var allGood = true
        for profile in profiles {
            let proxy = try await Proxy.start(
                ProxyConfiguration(
                    listen: Endpoint(host: "127.0.0.1", port: 0), upstream: echo.address, conditions: profile.conditions
                ),
                on: group)
            for size in Self.sizes {
                var times: [Nanoseconds] = []
                // A short transfer is over before the machine's own hiccups can average out: more of them.
                let isShort = EchoEstimate.time(ofBytes: size, under: profile.conditions) < Self.shortMax
                for _ in 0..<(isShort ? trials * Self.shortFactor : trials) {
                    times.append(try await EchoClient.time(ofBytes: size, through: proxy.address, on: group))
                    // The next connection shall have the link to itself: let this one's FINs arrive.
                    while await proxy.status().connectionsOpen > 0 { try await Task.sleep(for: .milliseconds(5)) }
                }
                let measured = times.sorted()[times.count / 2]
                let expected = EchoEstimate.time(ofBytes: size, under: profile.conditions)
                let off = measured - expected
                let tolerance = max(Nanoseconds.milliseconds(2), Nanoseconds(expected.count * 3 / 100))
                let isGood = abs(off.count) <= tolerance.count
                allGood = allGood && isGood
                rows.append([
                    profile.id, "\(size) B", Units.milliseconds(expected), Units.milliseconds(measured),
                    String(format: "%+.1f ms", off.inMilliseconds), isGood ? "ok" : "OFF",
                ])
                console.print("  \(profile.id) \(size) B: \(Units.milliseconds(measured))", to: .progress)
            }
            await proxy.stop(grace: .zero)
        }
        try await echo.stop()
        for line in Units.table(rows) { console.print(line) }
        if !allGood {
            console.print("a transfer was not within 3 % or 2 ms: is the machine busy?", to: .progress)
            throw ExitStatus.failed
        }
    }
}

/// What an echo must take, by arithmetic on a profile's figures alone: a check on the model, so it shares nothing
/// with it but the figures and the sizes of packets.
enum EchoEstimate {
    /// From connect() to the last byte of the echo of `size` bytes, on a connection that has the link to itself.
    static func time(ofBytes size: Int, under conditions: Conditions) -> Nanoseconds {
        let (up, down) = (conditions.up, conditions.down)
        func put(_ bytes: Int, on direction: DirectionConditions) -> Nanoseconds {
            direction.rate?.serializationTime(ofBytes: bytes) ?? .zero
        }
        // SYN up, SYN-ACK down; the ACK leaves just before the first byte.
        let established =
            conditions.dnsDelay + put(PacketSize.handshake, on: up) + up.delay
            + put(PacketSize.handshake, on: down) + down.delay
        var upIsFree = established + put(PacketSize.header, on: up)
        var downIsFree = Nanoseconds.zero
        var left = size
        while left > 0 {
            let packet = PacketSize.header + min(left, PacketSize.segmentMax)
            left -= min(left, PacketSize.segmentMax)
            upIsFree = upIsFree + put(packet, on: up)
            downIsFree = max(downIsFree, upIsFree + up.delay) + put(packet, on: down)
        }
        return downIsFree + down.delay
    }
}
