internal import ArgumentParser
internal import Files
internal import Foundation
internal import LinkModel
internal import NIOCore
internal import ProxyServer

/// A proxy in the foreground: commands in, answers and a status line out, until it is told to stop.
struct ProxyRun {
    let proxy: Proxy
    let console: Console
    /// What is in force, as the user named it.
    var profile: String
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

        while case .command(let line) = await happenings.next(), await answer(line, reporter) {
            happenings.commandIsAnswered()
        }
        reporting.cancel()
        console.clearStatus()
        let allArrived = await proxy.stop(grace: grace)
        if !isQuiet {
            console.print(
                allArrived ? "stopped" : "stopped; what was still on its way is dropped (see --grace)", to: .progress)
        }
        console.flush()
    }

    /// Answers a command; `false` if it was the last one.
    private mutating func answer(_ line: String, _ reporter: Reporter) async -> Bool {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let argument = words.count > 1 ? words[1].trimmingCharacters(in: .whitespaces) : nil
        switch (words[0].lowercased(), argument) {
        case ("profile", let name?):
            do {
                let found = try ProfileCatalogue.profile(name)
                if let reason = found.conditions.unsupported {
                    console.print("error profile '\(found.id)' has \(reason)")
                    return true
                }
                await put(found.conditions, as: found.id, reporter)
                console.print("ok profile \(found.id): \(Units.conditions(found.conditions))")
            } catch {
                console.print("error \(Self.onOneLine("\(error)"))")
            }
        case ("profile", nil):
            console.print("error profile needs a name or a path, as 'profile edge'")
        case ("clear", nil):
            await put(.clear, as: "none", reporter)
            console.print("ok clear: nothing in force")
        case ("status", nil):
            console.print("ok \(Reporter.sentence(await proxy.status(), profile: profile))")
        case ("quit", nil), ("exit", nil):
            console.print("ok quit")
            return false
        case ("help", nil):
            console.print("ok commands: profile NAME|FILE, clear, status, quit, help")
        default:
            let known = ["profile", "clear", "status", "quit", "help"]
            let nearest = NearestName.of(words[0], in: known, limit: 1).first.map { "; did you mean '\($0)'?" } ?? ""
            console.print("error unknown command '\(line.prefix(60))'\(nearest) (\(known.joined(separator: ", ")))")
        }
        return true
    }

    private mutating func put(_ conditions: Conditions, as name: String, _ reporter: Reporter) async {
        await proxy.setConditions(conditions)
        profile = name
        reporter.profile = name
    }

    private static func onOneLine(_ text: String) -> String {
        text.split(separator: "\n").joined(separator: " | ")
    }
}
