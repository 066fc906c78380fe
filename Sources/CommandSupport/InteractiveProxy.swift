internal import ArgumentParser
internal import ConfigFiles
internal import Foundation
internal import LinkModel
internal import NIOCore
internal import ProxyServer
internal import ScenarioModel

/// A proxy in the foreground: commands in, answers and a status line out, until it is told to stop.
struct ProxyRun {
    let proxy: Proxy
    let console: Console
    /// What is in force, as the user named it.
    var profile: String
    /// The timeline that is followed, if one is.
    var course: TimelineCourse?
    let grace: TimeAmount
    let isQuiet: Bool
    let happenings: Happenings

    /// How often the status line is drawn on a terminal.
    private static let drawEvery = Duration.milliseconds(200)
    /// How often a line is logged elsewhere, if anything has changed.
    private static let logEvery = Duration.seconds(10)

    /// Runs until a command or a signal stops it, and everything is closed.
    mutating func untilStopped() async {
        let restore = CommandReader.start(console) { [happenings] in happenings.take(command: $0) }
        defer { restore?() }
        happenings.restore(with: restore)

        let reporter = Reporter(proxy: proxy, console: console)
        reporter.profile = profile
        // Ended by the cancellation below, when the proxy stops.
        let reporting = Task { [console, isQuiet] in
            if console.hasStatusLine {
                await reporter.draw(every: Self.drawEvery)
            } else if !isQuiet {
                await reporter.log(every: Self.logEvery)
            }
        }
        defer { reporting.cancel() }

        while case .command(let line) = await happenings.next(), await answer(line, reporter) {}
        reporting.cancel()
        console.clearStatus()
        let allArrived = await proxy.stop(grace: grace)
        if !isQuiet {
            console.print(
                allArrived ? "stopped" : "stopped; what was still on its way is dropped (see --grace)", to: .progress)
        }
        console.flush()
    }

    /// Replies to a command with one line; `false` if it was the last one.
    private mutating func answer(_ line: String, _ reporter: Reporter) async -> Bool {
        let reply = { [console, happenings] (text: String) in
            // A reader that does not read stops the commands, and nothing else.
            console.print(text) { happenings.commandIsAnswered() }
        }
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let argument = words.count > 1 ? words[1].trimmingCharacters(in: .whitespaces) : nil
        switch (words[0].lowercased(), argument) {
        case ("profile", let name?):
            do {
                let found = try ProfileCatalogue.profile(name)
                await put(found.conditions, as: found.id, reporter)
                reply("ok profile \(found.id): \(Units.conditions(found.conditions))")
            } catch {
                reply("error \(Self.onOneLine("\(error)"))")
            }
        case ("profile", nil):
            reply("error profile needs a name or a path, as 'profile edge'")
        case ("timeline", let what?):
            do {
                let file = try ProfileCatalogue.timeline(what)
                course = TimelineCourse(file)
                await follow(file, from: .zero, reporter)
                reply("ok timeline \(file.id)")
            } catch {
                reply("error \(Self.onOneLine("\(error)"))")
            }
        case ("timeline", nil):
            reply("error timeline needs a name, a path or times, as 'timeline 0s: 3g, 20s: 100-loss, 50s: 3g'")
        case ("pause", nil), ("resume", nil), ("seek", _):
            reply(await steer(words[0].lowercased(), argument, reporter))
        case ("cut", let what) where [nil, "up", "down", "both"].contains(what):
            await proxy.setCut(PerDirection(up: what != "down", down: what != "up"))
            reply("ok cut \(what ?? "both")")
        case ("cut", _):
            reply("error cut what? 'cut', 'cut up' or 'cut down'")
        case ("heal", nil):
            await proxy.setCut(PerDirection(up: false, down: false))
            reply("ok heal")
        case ("reset", nil):
            await proxy.reset()
            reply("ok reset: every connection is cut")
        case ("clear", nil):
            await put(.clear, as: "none", reporter)
            reply("ok clear: nothing in force")
        case ("status", nil):
            reply("ok \(Reporter.sentence(await proxy.status(), profile: profile))")
        case ("quit", nil), ("exit", nil):
            reply("ok quit")
            return false
        case ("help", nil):
            reply(
                "ok commands: profile NAME|FILE, timeline NAME|FILE|TIMES, pause, resume, seek TIME, cut [up|down], heal, reset, clear, status, quit, help"
            )
        default:
            let known = [
                "profile", "timeline", "pause", "resume", "seek", "cut", "heal", "reset", "clear", "status", "quit",
                "help",
            ]
            let nearest = NearestName.of(words[0], in: known, limit: 1).first.map { "; did you mean '\($0)'?" } ?? ""
            reply("error unknown command '\(line.prefix(60))'\(nearest) (\(known.joined(separator: ", ")))")
        }
        return true
    }

    /// Stops, starts or moves the timeline; gives the answer.
    private mutating func steer(_ command: String, _ argument: String?, _ reporter: Reporter) async -> String {
        guard var course else { return "error no timeline is followed; begin one with 'timeline NAME'" }
        if command == "pause" {
            course.pause()
            self.course = course
            await proxy.setConditions(await proxy.status().link.conditions)
            return "ok pause at \(Moment.text(course.position))"
        }
        var position = course.position
        if command == "seek" {
            guard let time = TimelineFile.time(argument ?? "") else { return "error seek needs a time, as 'seek 20s'" }
            position = time
        }
        course.resume(at: position)
        self.course = course
        await follow(course.file, from: position, reporter)
        return "ok \(command) at \(Moment.text(position))"
    }

    private mutating func follow(_ file: TimelineFile, from position: Nanoseconds, _ reporter: Reporter) async {
        await proxy.follow(file.timeline, from: position)
        profile = file.id
        reporter.profile = file.id
    }

    private mutating func put(_ conditions: Conditions, as name: String, _ reporter: Reporter) async {
        course = nil
        await proxy.setConditions(conditions)
        profile = name
        reporter.profile = name
    }

    private static func onOneLine(_ text: String) -> String {
        text.split(separator: "\n").joined(separator: " | ")
    }
}
