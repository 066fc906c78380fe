internal import ArgumentParser
internal import ConfigFiles
internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import ProxyServer

/// `slowlane doctor`.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Says what works on this machine, and what to do about the rest.",
        discussion: "Exit status 1 if the proxy cannot work here at all; notes alone leave it 0.")

    private enum Finding {
        case fine(String)
        case note(String, todo: String)
        case broken(String, todo: String)
    }

    func run() async throws {
        let console = Console()
        var isBroken = false
        for finding in await findings() {
            switch finding {
            case .fine(let what):
                console.print("ok    \(what)")
            case .note(let what, let todo):
                console.print("note  \(what)\n      -> \(todo)")
            case .broken(let what, let todo):
                console.print("FAIL  \(what)\n      -> \(todo)")
                isBroken = true
            }
        }
        if isBroken { throw ExitStatus.failed }
    }

    private func findings() async -> [Finding] {
        [
            .fine("slowlane \(SlowlaneVersion.current), \(ProfileCatalogue.builtIn.count) profiles built in"),
            await loopback("127.0.0.1", isNeeded: true),
            await loopback("::1", isNeeded: false),
            openFiles(),
            await timers(),
            network(),
            silence(),
            straightPath(),
        ]
    }

    private func loopback(_ host: String, isNeeded: Bool) async -> Finding {
        do {
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .bind(host: host, port: 0).get()
            try await channel.close()
            return .fine("can listen on \(host)")
        } catch {
            let what = "cannot listen on \(host): \(error)"
            return isNeeded
                ? .broken(what, todo: "bring the loopback interface up ('ip link set lo up')")
                : .note(what, todo: "IPv6 is off here; use 127.0.0.1")
        }
    }

    private func openFiles() -> Finding {
        let files = Terminal.raiseOpenFileLimit()
        let fit = (files - 64) / 2
        return fit >= 1000
            ? .fine("\(files) open files: room for \(min(fit, ProxyConfiguration.connectionsMaxDefault)) connections")
            : .note("\(files) open files: room for \(fit) connections", todo: "raise the hard limit ('ulimit -Hn')")
    }

    /// How late a timer of the event loop fires on this machine, now.
    private func timers() async -> Finding {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        var lateness: [Int64] = []
        for _ in 0..<50 {
            let deadline = NIODeadline.now() + .milliseconds(2)
            let fired = try? await loop.scheduleTask(deadline: deadline) { NIODeadline.now() }.futureResult.get()
            if let fired { lateness.append((fired - deadline).nanoseconds) }
        }
        lateness.sort()
        guard let median = lateness.dropFirst(lateness.count / 2).first, let worst = lateness.last else {
            return .broken("timers do not fire", todo: "report this")
        }
        let text = String(
            format: "timers fire %.2f ms late (median of 50, worst %.2f ms)", Double(median) / 1e6, Double(worst) / 1e6)
        return median < 1_000_000
            ? .fine(text) : .note(text, todo: "the machine is busy or virtual: delays will be that much longer")
    }

    private func silence() -> Finding {
        switch SYNDropMethod.best {
        case .socketFilter: .fine("at 100 % loss connect() hears nothing: a filter on the listening socket")
        case .acceptQueue:
            .fine(
                "at 100 % loss connect() hears nothing: the accept queue is kept full (a filter is not allowed)")
        case .none:
            .note(
                "at 100 % loss connect() succeeds, and then stalls: no way to keep a SYN from being answered here",
                todo: "run on Linux where a client's own connect time-out must be exercised")
        }
    }

    private func straightPath() -> Finding {
        Proxy.hasFastPath
            ? .fine("while nothing is in force bytes go from socket to socket uncopied (splice)")
            : .note(
                "while nothing is in force bytes are copied like any others: there is no splice here",
                todo: "run on Linux where a few hundred connections a second or gigabytes go through")
    }

    private func network() -> Finding {
        let addresses = LocalAddresses.reachable(through: "0.0.0.0")
        return addresses.isEmpty
            ? .note("no network but the loopback", todo: "a phone can connect once this machine is on its network")
            : .fine("a phone would connect to \(addresses.joined(separator: " or ")) ('--listen 0.0.0.0:PORT')")
    }
}
