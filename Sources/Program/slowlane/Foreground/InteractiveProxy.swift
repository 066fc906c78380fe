internal import CommandSupport
internal import ConfigFiles
internal import ControlAPI
internal import Determinism
internal import Foundation
internal import LinkModel
internal import NIOCore
internal import Proxy
internal import Scenario

/// A proxy in the foreground: commands on standard input, one reply each, and a status line.
struct InteractiveProxy {
    private let proxy: Proxy
    private let console: Console
    private let events: ForegroundEvents
    private let grace: TimeAmount
    private let isQuiet: Bool
    private let stops: StopReasons
    /// The user's name for the current conditions: a profile, a timeline or `none`.
    private var conditionsName: String
    /// The timeline, if the conditions come from one.
    private var playback: TimelinePlayback?
    /// The proxy in the API of the dashboard, if there is one.
    private let adopted: AdoptedProxy?
    /// The commands of a forward proxy; `nil` for a proxy of one upstream.
    private let forward: ForwardCommands?
    /// The outage made by `outage`; it is independent of the conditions.
    private var outage = PerDirection(up: false, down: false)

    /// The reasons to stop, besides the command `quit` and signals.
    struct StopReasons: OptionSet, Sendable {
        let rawValue: Int

        init(rawValue: Int) { self.rawValue = rawValue }

        /// The end of standard input.
        static let inputEnd = StopReasons(rawValue: 1)
        /// The end of the parent process.
        static let parentExit = StopReasons(rawValue: 2)
    }

    /// The interval at which the status line is redrawn on a terminal.
    private static let drawInterval = Duration.milliseconds(200)
    /// The interval of status lines elsewhere; unchanged ones are left out.
    private static let logInterval = Duration.seconds(10)

    /// The commands with their arguments, for `help` and for errors.
    static let commands =
        [
            "profile NAME|FILE", "timeline NAME|FILE|TIMES", "pause", "resume", "seek TIME", "outage [up|down]",
            "end-outage",
            "fault RULE", "fault remove N|all", "faults", "disconnect", "clear", "status", "quit", "help",
        ] + ForwardCommands.commands

    /// The names of the commands, each once.
    static var commandNames: [String] {
        var names: [String] = []
        for name in commands.map({ String($0.prefix { $0 != " " }) }) where !names.contains(name) { names.append(name) }
        return names
    }

    /// Wraps a running proxy.
    ///
    /// - Parameters:
    ///   - conditionsName: The user's name for the conditions that the proxy was started with.
    ///   - timeline: The timeline that the proxy was started with, if any.
    ///   - grace: The longest time that open transfers may take after a stop.
    ///   - stops: The reasons to stop.
    ///   - adopted: The proxy in the API of the dashboard.
    ///   - isForward: Whether the proxy is a forward proxy.
    init(
        _ proxy: Proxy, console: Console, events: ForegroundEvents, conditionsName: String,
        timeline: TimelineFile?, grace: TimeAmount, isQuiet: Bool, stops: StopReasons = [],
        adopted: AdoptedProxy? = nil, isForward: Bool = false
    ) {
        self.proxy = proxy
        self.console = console
        self.events = events
        self.conditionsName = conditionsName
        self.grace = grace
        self.isQuiet = isQuiet
        self.stops = stops
        self.adopted = adopted
        forward = isForward ? ForwardCommands(proxy) : nil
        playback = timeline.map {
            TimelinePlayback($0, from: $0.start?.offsetNow ?? .zero, startingAt: .now)
        }
    }

    /// Prints the addresses of the proxy, and a warning if other machines can reach the upstream through it.
    func announce(upstream: String, conditions: String, protocols: ForwardedProtocols = .tcp) {
        let address = proxy.address
        let upstream = protocols == .tcp ? upstream : "\(upstream) (\(protocols))"
        guard !LocalAddresses.isLoopback(address.host) else {
            return console.print("listening on \(address) -> \(upstream), \(conditions)")
        }
        let others = LocalAddresses.reachable(through: address.host).map {
            "\(Endpoint(host: $0, port: address.port))"
        }
        let note = others.isEmpty ? "" : " (from another device \(others.joined(separator: " or ")))"
        console.print("listening on \(address)\(note) -> \(upstream), \(conditions)")
        // A forward proxy admits only the clients of --allow or --user.
        if forward != nil { return }
        console.print(
            "warning: other machines can reach the upstream through port \(address.port); "
                + "use --listen 127.0.0.1:\(address.port) for this machine only", to: .progress)
    }

    /// Executes commands until `quit` or a signal, then stops the proxy.
    mutating func run() async {
        let (events, endsWithInput) = (events, stops.contains(.inputEnd))
        if stops.contains(.parentExit) { ParentMonitor.start(events.parent) { events.receive(.parentExited) } }
        let restore = InputReader.start(
            console, words: PromptWords.following, onLine: { events.receive($0) },
            onEnd: { if endsWithInput { events.receive(.inputEnded) } })
        defer { restore?() }
        events.setLastAction { [proxy] in
            restore?()
            Self.abortConnections(of: proxy)
        }

        let reporter = ProxyReporter(proxy: proxy, console: console)
        reporter.conditionsName = conditionsName
        // Cancelled below, when the proxy stops.
        let reporting = Task { [console, isQuiet] in
            if console.hasStatusLine {
                await reporter.draw(every: Self.drawInterval)
            } else if !isQuiet {
                await reporter.log(every: Self.logInterval)
            }
        }
        defer { reporting.cancel() }

        while case .line(let line) = await events.next() {
            let reply = await reply(to: line)
            reporter.conditionsName = conditionsName
            // A stalled reader of the output delays further commands, but not the proxy.
            console.print(TextTable.singleLine(reply ?? "ok quit")) { [events] in events.replyWritten() }
            if reply == nil { break }
        }
        reporting.cancel()
        console.clearStatus()
        let hasDrained = await proxy.stop(grace: grace)
        await events.checkSecondSignal()
        for line in await FaultCommands(proxy).summary() { console.print(line) }
        if !isQuiet {
            console.print(
                hasDrained ? "stopped" : "stopped; open transfers were dropped (RST)", to: .progress)
        }
        console.flush()
    }

    private mutating func reply(to line: InputLine) async -> String? {
        switch line {
        case .command(let command): await reply(to: command)
        case .invalid(let reason): "error \(reason)"
        }
    }

    /// Closes the port and all connections before the process ends: the kernel would send a FIN, with which a truncated
    /// stream appears complete. Blocks for ``abortTimeMax`` at most.
    private static func abortConnections(of proxy: Proxy) {
        let isDone = DispatchSemaphore(value: 0)
        Task.detached {
            await proxy.stop(grace: .zero)
            isDone.signal()
        }
        _ = isDone.wait(timeout: .now() + abortTimeMax)
    }

    private static let abortTimeMax = DispatchTimeInterval.milliseconds(500)

    /// Executes a command and returns its reply; `nil` for `quit`.
    mutating func reply(to line: String) async -> String? {
        let words = line.split(maxSplits: 1, whereSeparator: \.isWhitespace).map(String.init)
        guard !words.isEmpty else { return "error the line has no command" }
        let argument = words.count > 1 ? words[1].trimmingCharacters(in: .whitespaces) : nil
        switch (words[0].lowercased(), argument) {
        case ("profile", let name?):
            do {
                let profile = try ProfileCatalogue.profile(name)
                await apply(profile.conditions, named: profile.id)
                return "ok profile \(profile.id): \(Units.conditions(profile.conditions))\(outageNote)"
            } catch {
                return "error \(Self.onOneLine("\(error)"))"
            }
        case ("profile", nil): return "error profile needs a name or a path, such as 'profile edge'"
        case ("timeline", let text?):
            do {
                let file = try ProfileCatalogue.timeline(text)
                playback = TimelinePlayback(file, startingAt: .now)
                await startTimeline(file, from: .zero)
                return "ok timeline \(file.id)\(outageNote)"
            } catch {
                return "error \(Self.onOneLine("\(error)"))"
            }
        case ("timeline", nil):
            return "error timeline needs a name, a path or times, such as 'timeline 0s: 3g, 20s: 100-loss, 50s: 3g'"
        case ("pause", nil): return await pause()
        case ("resume", nil): return await resume(at: nil)
        case ("seek", let text):
            guard let time = TimelineFile.time(text ?? "") else {
                return "error seek needs a time, such as 'seek 20s'"
            }
            return await resume(at: time)
        case ("outage", let direction) where [nil, "up", "down", "both"].contains(direction):
            await setOutage(PerDirection(up: direction != "down", down: direction != "up"))
            return "ok outage \(direction ?? "both")"
        case ("outage", _):
            return "error outage takes up, down or no argument (both directions): 'outage', 'outage up', 'outage down'"
        case ("end-outage", nil):
            await setOutage(PerDirection(up: false, down: false))
            return "ok end-outage\(await conditionsNote())"
        case ("fault", let rule?):
            let reply = await FaultCommands(proxy).execute(rule)
            await adopted?.faultsChanged()
            return reply
        case ("fault", nil): return "error fault needs a rule, such as 'fault POST * nth 3 before-response stall'"
        case ("faults", nil): return await FaultCommands(proxy).list()
        case ("to", let rule?) where forward != nil:
            let reply = await forward?.change(rule)
            await adopted?.forwardChanged()
            return reply
        case ("rules", nil) where forward != nil: return await forward?.list()
        case ("hosts", nil) where forward != nil: return await forward?.hosts()
        case ("to", nil) where forward != nil:
            return "error to needs a pattern and conditions, such as 'to *.cdn.test=wifi'"
        case ("to", _), ("rules", _), ("hosts", _): return "error '\(words[0])' needs a forward proxy (--forward)"
        case ("disconnect", nil):
            await proxy.abortConnections()
            return "ok disconnect: all connections aborted (RST)"
        case ("clear", nil):
            await apply(.clear, named: "none")
            return "ok clear: no conditions\(outageNote)"
        case ("status", nil):
            // The dashboard may have changed the link.
            if let adopted { conditionsName = await adopted.conditionsName }
            return "ok \(ProxyReporter.sentence(await proxy.status(), conditionsName: conditionsName))"
        case ("quit", nil), ("exit", nil): return nil
        case ("help", nil): return "ok commands: \(Self.commands.joined(separator: ", "))"
        default:
            let known = Self.commandNames
            let nearest =
                RenamedWords.hint(words[0], in: known)
                ?? NearestName.of(words[0], in: known, limit: 1).first.map { "; did you mean '\($0)'?" } ?? ""
            return "error unknown command '\(line.prefix(60))'\(nearest) (\(known.joined(separator: ", ")))"
        }
    }

    private mutating func pause() async -> String {
        guard var playback else { return Self.noTimeline }
        playback.pause(at: .now)
        self.playback = playback
        if let adopted {
            await adopted.pauseTimeline()
        } else {
            await proxy.setConditions(await proxy.status().link.conditions)
        }
        return "ok pause at \(TimeFormat.seconds(max(.zero, playback.position(at: .now))))"
    }

    /// Continues the timeline at a time, or where it was paused.
    private mutating func resume(at time: Nanoseconds?) async -> String {
        guard var playback else { return Self.noTimeline }
        let position = time ?? playback.position(at: .now)
        playback.resume(from: position, at: .now)
        self.playback = playback
        await startTimeline(playback.file, from: position)
        return "ok \(time == nil ? "resume" : "seek") at \(TimeFormat.seconds(max(.zero, position)))\(outageNote)"
    }

    private static let noTimeline = "error no timeline is running; start one with 'timeline NAME'"

    private mutating func startTimeline(_ file: TimelineFile, from position: Nanoseconds) async {
        var file = file
        file.start = nil
        if let adopted {
            await adopted.startTimeline(file, from: position)
        } else {
            await proxy.startTimeline(file.timeline, from: position)
        }
        conditionsName = file.id
    }

    private mutating func apply(_ conditions: Conditions, named name: String) async {
        playback = nil
        if let adopted {
            await adopted.setConditions(conditions, profile: name == "none" || name == "netem" ? nil : name)
        } else {
            await proxy.setConditions(conditions)
        }
        conditionsName = name
    }

    private mutating func setOutage(_ directions: PerDirection<Bool>) async {
        if let adopted { await adopted.setOutage(directions) } else { await proxy.setOutage(directions) }
        outage = directions
    }

    /// A reminder that `outage` still blocks traffic under the new conditions.
    private var outageNote: String {
        guard outage.up || outage.down else { return "" }
        let direction = outage.up && outage.down ? "both directions" : outage.up ? "upstream" : "downstream"
        return "; 'outage' still blocks \(direction): end it with 'end-outage'"
    }

    /// A reminder that the conditions themselves block traffic, after an outage was lifted.
    private func conditionsNote() async -> String {
        let conditions = await proxy.status().link.conditions
        let effect: String
        switch conditions.connectionPolicy {
        case .offline, .dns: effect = "refuses all connections"
        case .portal: effect = "responds as a captive portal"
        case .open:
            switch (conditions.up.loss == .one, conditions.down.loss == .one) {
            case (true, true): effect = "blocks both directions (100 % loss)"
            case (true, false): effect = "blocks upstream (100 % loss)"
            case (false, true): effect = "blocks downstream (100 % loss)"
            case (false, false): return ""
            }
        }
        return "; '\(conditionsName)' still \(effect): change it with 'profile NAME' or 'clear'"
    }

    private static func onOneLine(_ text: String) -> String {
        text.split(separator: "\n").joined(separator: " | ")
    }
}
