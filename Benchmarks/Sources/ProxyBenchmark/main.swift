// Measures the lateness of a live proxy relative to its model, and its CPU time: 1, 50 and 500 saturated links on one event
// loop, and one link without a rate limit. A second process generates the load, on another core if possible.
//
//     ProxyBenchmark [seconds [word]] runs all workloads, or those with the word in their name
//     ProxyBenchmark load [ticks]     generates the load: a server, and clients for the ports on standard input; with
//                                     'ticks' the server sends 100 bytes every 250 ms instead of as much as possible

import Determinism
import Foundation
import Histogram
import Impairment
import LinkModel
import NIOCore
import NIOPosix
import Proxy

/// Sends continuously, as fast as the socket permits.
final class Source: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let chunk = ByteBuffer(repeating: 65, count: 64 << 10)

    func channelActive(context: ChannelHandlerContext) { fill(context) }

    func channelWritabilityChanged(context: ChannelHandlerContext) { fill(context) }

    private func fill(_ context: ChannelHandlerContext) {
        while context.channel.isActive && context.channel.isWritable {
            context.writeAndFlush(NIOAny(chunk), promise: nil)
        }
    }
}

/// Sends a hundred bytes every 250 ms.
final class Ticks: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let chunk = ByteBuffer(repeating: 65, count: 100)

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        let chunk = chunk
        context.eventLoop.scheduleRepeatedTask(
            initialDelay: .milliseconds(Int64.random(in: 0..<250)), delay: .milliseconds(250)
        ) { task in
            if channel.isActive { channel.writeAndFlush(chunk, promise: nil) } else { task.cancel() }
        }
    }
}

final class Sink: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}
}

func load(ticks: Bool) throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let server = try ServerBootstrap(group: group)
        .serverChannelOption(.backlog, value: 1024)
        .childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(ticks ? Ticks() as any ChannelHandler : Source())
            }
        }
        .bind(host: "127.0.0.1", port: 0).wait()
    FileHandle.standardOutput.write(Data("\(server.localAddress?.port ?? 0)\n".utf8))
    while let line = readLine(), let port = Int(line) {
        _ = try ClientBootstrap(group: group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Sink()) }
            }
            .connect(host: "127.0.0.1", port: port).wait()
    }
    // The process ends with its standard input.
    exit(0)
}

/// The lateness of writes. Used only on the event loop that all proxies share.
final class Lateness: @unchecked Sendable {
    private var histogram = Histogram<UInt64>(highestTrackableValue: 60_000_000_000, numberOfSignificantValueDigits: .two)
    private var isCounting = false

    func record(_ lateness: Nanoseconds) {
        if isCounting { histogram.record(UInt64(max(0, lateness.count))) }
    }

    func start() {
        histogram.reset()
        isCounting = true
    }

    func stop() -> Histogram<UInt64> {
        isCounting = false
        return histogram
    }
}

func processorSeconds() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

struct Workload {
    let name: String
    let links: Int
    let connections: Int
    let conditions: Conditions
    var toxics: [Toxic] = []
}

let threeG = Conditions(
    up: DirectionConditions(rate: .kilobits(330), delay: .milliseconds(100)),
    down: DirectionConditions(rate: .kilobits(780), delay: .milliseconds(100)))
let edge = Conditions(
    up: DirectionConditions(rate: .kilobits(200), delay: .milliseconds(440)),
    down: DirectionConditions(rate: .kilobits(240), delay: .milliseconds(400)))
let fast = Conditions(
    up: DirectionConditions(delay: .milliseconds(1)), down: DirectionConditions(delay: .milliseconds(1)))

func run(_ workload: Workload, seconds: Double) async throws {
    if CommandLine.arguments.count > 2, !workload.name.contains(CommandLine.arguments[2]) { return }
    let child = Process()
    let program = CommandLine.arguments[0]
    // On a separate core, if taskset is available.
    child.executableURL = URL(filePath: "/bin/sh")
    child.arguments = ["-c", "exec $(command -v taskset >/dev/null && echo taskset -c 1) \"$0\" load \(workload.toxics.isEmpty ? "" : "ticks")", program]
    let (input, output) = (Pipe(), Pipe())
    child.standardInput = input
    child.standardOutput = output
    try child.run()
    let text = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    guard let upstream = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) else { fatalError("the load process did not print its port: \(text)") }

    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let lateness = Lateness()
    var proxies: [Proxy] = []
    for number in 0..<workload.links {
        var configuration = ProxyConfiguration(
            listen: Endpoint("127.0.0.1:0")!, upstream: Endpoint(host: "127.0.0.1", port: upstream),
            conditions: workload.conditions)
        configuration.seed = UInt64(number)
        configuration.toxics = workload.toxics
        configuration.onLateness = { lateness.record($0) }
        let proxy = try await Proxy.start(configuration, on: group)
        proxies.append(proxy)
        for _ in 0..<workload.connections {
            try input.fileHandleForWriting.write(contentsOf: Data("\(proxy.address.port)\n".utf8))
        }
    }
    func packets() async -> Int {
        var count = 0
        for proxy in proxies {
            let counters = await proxy.status().link.counters
            count += counters.up.packets + counters.down.packets
        }
        return count
    }
    try await Task.sleep(for: .seconds(4))
    let before = await packets()
    try await loop.submit { lateness.start() }.get()
    let cpu = processorSeconds()
    let start = ContinuousClock.now
    try await Task.sleep(for: .seconds(seconds))
    let histogram = try await loop.submit { lateness.stop() }.get()
    let used = processorSeconds() - cpu
    let passed = Double((ContinuousClock.now - start).components.seconds) + Double((ContinuousClock.now - start).components.attoseconds) / 1e18
    let rate = Double(await packets() - before) / passed

    func microseconds(_ percentile: Double) -> String {
        String(format: "%.0f", Double(histogram.valueAtPercentile(percentile)) / 1000)
    }
    let within = histogram.percentileAtOrBelowValue(1_000_000)
    print(
        "\(workload.name): \(histogram.totalCount) writes, "
            + "lateness p50 \(microseconds(50)) us, p99 \(microseconds(99)) us, p99.9 \(microseconds(99.9)) us, "
            + "max \(microseconds(100)) us; within 1 ms \(String(format: "%.2f", within)) %")
    // Without conditions no packets are modelled: count writes.
    let events = rate > 0 ? rate : Double(histogram.totalCount) / passed
    print(
        String(
            format: "    %.0f \(rate > 0 ? "packets" : "writes")/s, %.0f %% of a core, %.1f us per event", events,
            100 * used / passed, 1e6 * used / passed / events))
    for limit in [20, 50, 100, 150, 200, 500, 1000, 2000, 5000, 10_000] {
        let share = histogram.percentileAtOrBelowValue(UInt64(limit) * 1000)
        print(
            "    <= \(String(repeating: " ", count: 6 - "\(limit)".count))\(limit) us "
                + String(format: "%6.2f %% ", share) + String(repeating: "#", count: Int(share / 2)))
        if share >= 100 { break }
    }
    try input.fileHandleForWriting.close()
    for proxy in proxies { await proxy.stop(grace: .zero) }
    child.waitUntilExit()
    try await group.shutdownGracefully()
}

signal(SIGPIPE, SIG_IGN)
var files = rlimit()
getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
files.rlim_cur = files.rlim_max
setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
if CommandLine.arguments.dropFirst().first == "load" {
    try load(ticks: CommandLine.arguments.contains("ticks"))
} else {
    let seconds = CommandLine.arguments.dropFirst().first.flatMap(Double.init) ?? 10
    try await run(
        Workload(
            name: "a latency toxic of 100 ms, 500 connections, 2 000 chunks a second", links: 1, connections: 500,
            conditions: .clear,
            toxics: [Toxic(name: "t", stream: .down, effect: .latency(latency: 100, jitter: 0))]), seconds: seconds)
    for links in [1, 50, 500] {
        try await run(
            Workload(name: "\(links) saturated 3G links", links: links, connections: 1, conditions: threeG),
            seconds: seconds)
    }
    try await run(
        Workload(name: "500 saturated Edge links", links: 500, connections: 1, conditions: edge), seconds: seconds)
    try await run(
        Workload(name: "1 link of 1 ms without a rate limit, 8 downloads", links: 1, connections: 8, conditions: fast),
        seconds: seconds)
}
