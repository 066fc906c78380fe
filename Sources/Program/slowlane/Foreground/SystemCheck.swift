internal import CommandSupport
internal import CommandTraffic
internal import Foundation
internal import HTTPSockets
internal import NIOCore
internal import NIOPosix
internal import PacketCapture
internal import Proxy
internal import Wire

/// The check of the features that a proxy can use on this machine.
enum SystemCheck {
    /// One result of the check.
    enum Finding: Sendable {
        /// A feature that works.
        case ok(String)
        /// A feature that works with limitations.
        case limitation(String, remedy: String)
        /// A feature without which a proxy cannot work.
        case failure(String, remedy: String)

        /// The result with its remedy, in one or two lines.
        var text: String {
            switch self {
            case .ok(let text): "ok    \(text)"
            case .limitation(let text, let remedy): "note  \(text)\n      -> \(remedy)"
            case .failure(let text, let remedy): "FAIL  \(text)\n      -> \(remedy)"
            }
        }

        /// The result as a JSON object.
        var json: String {
            let (result, text, remedy): (String, String, String?) =
                switch self {
                case .ok(let text): ("ok", text, nil)
                case .limitation(let text, let remedy): ("limitation", text, remedy)
                case .failure(let text, let remedy): ("failure", text, remedy)
                }
            return JSONText.object([
                ("result", JSONText.string(result)), ("text", JSONText.string(text)),
                ("remedy", JSONText.string(remedy)),
            ])
        }

        /// Whether a proxy cannot work.
        var isFailure: Bool {
            if case .failure = self { true } else { false }
        }
    }

    /// Returns the results as a JSON object.
    static func json(_ findings: [Finding]) -> String {
        JSONText.object([
            ("type", JSONText.string("doctor")), ("version", "1"),
            ("slowlane", JSONText.string(SlowlaneVersion.current)),
            ("works", "\(!findings.contains(where: \.isFailure))"),
            ("checks", JSONText.array(findings.map(\.json))),
        ])
    }

    /// Runs all checks; takes a fraction of a second.
    static func run() async -> [Finding] {
        [
            await loopback("127.0.0.1", isNeeded: true),
            await loopback("::1", isNeeded: false),
            openFiles(),
            await timers(),
            network(),
            synDropping(),
            fastPath(),
            connectMode(),
            capture(),
            tls(),
        ] + [authority()].compactMap { $0 }
    }

    private static func tls() -> Finding {
        TLSSupport.isBuilt
            ? .ok("this program contains TLS: upstreams with https://, and --intercept")
            : .limitation(
                "this program is built without TLS: no upstreams with https://, no --intercept",
                remedy: "use a release, or the program of 'swift build'")
    }

    /// The authority of intercepted connections on disk, if there is one.
    private static func authority() -> Finding? {
        let folder = AuthorityFolder.ofUser()
        do throws(CertificateAuthorityError) {
            guard TLSSupport.isBuilt, let authority = try folder.load() else { return nil }
            try authority.check(authority.hosts, now: Int64(Date().timeIntervalSince1970))
            return .ok("the authority of 'slowlane ca' may certify \(authority.hosts)")
        } catch {
            return .limitation(
                "the authority of 'slowlane ca' cannot be used: \(error)",
                remedy: "run 'slowlane ca delete' and 'slowlane ca create'")
        }
    }

    private static func loopback(_ host: String, isNeeded: Bool) async -> Finding {
        do {
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .bind(host: host, port: 0).get()
            try await channel.close()
            return .ok("can listen on \(host)")
        } catch {
            let text = "cannot listen on \(host): \(SystemErrorDescription(error))"
            return isNeeded
                ? .failure(text, remedy: "enable the loopback interface ('ip link set lo up')")
                : .limitation(text, remedy: "IPv6 is disabled; use 127.0.0.1")
        }
    }

    private static func openFiles() -> Finding {
        let files = Terminal.raiseOpenFileLimit()
        let connections = min(
            ProxyConfiguration.connectionsMax(withOpenFiles: files), ProxyConfiguration.connectionsMaxDefault)
        let text = "the limit of open files is \(files), enough for \(TextTable.count(connections, "connection"))"
        if connections == 0 { return .failure(text, remedy: "raise the hard limit ('ulimit -Hn')") }
        return connections >= 1000 ? .ok(text) : .limitation(text, remedy: "raise the hard limit ('ulimit -Hn')")
    }

    /// Measures how late timers of the event loop fire.
    private static func timers() async -> Finding {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        var lateness: [Int64] = []
        for _ in 0..<50 {
            let deadline = NIODeadline.now() + .milliseconds(2)
            let fired = try? await loop.scheduleTask(deadline: deadline) { NIODeadline.now() }.futureResult.get()
            if let fired { lateness.append((fired - deadline).nanoseconds) }
        }
        lateness.sort()
        guard let median = lateness.dropFirst(lateness.count / 2).first, let worst = lateness.last else {
            return .failure("timers do not fire", remedy: "please report this")
        }
        let text = String(
            format: "timers fire %.2f ms late (median of 50, worst %.2f ms)", Double(median) / 1e6, Double(worst) / 1e6)
        return median < 1_000_000
            ? .ok(text)
            : .limitation(text, remedy: "the machine is busy or virtual; modelled delays are longer by this time")
    }

    private static func synDropping() -> Finding {
        switch SYNDropMethod.best {
        case .socketFilter: .ok("at 100 % loss new connections time out (SYN dropped by a socket filter)")
        case .acceptQueue:
            .ok(
                "at 100 % loss new connections time out (SYN dropped by a full accept queue; no socket filter permitted)"
            )
        case .none:
            .limitation(
                "at 100 % loss new connections open and stall; this system offers no way to drop a SYN",
                remedy: "use Linux to test the connect timeout of a client")
        }
    }

    private static func fastPath() -> Finding {
        Proxy.hasFastPath
            ? .ok("without conditions data passes from socket to socket in the kernel (splice)")
            : .limitation(
                "without conditions data is copied in user space; this system has no splice",
                remedy: "use Linux for hundreds of connections per second or for gigabytes")
    }

    private static func connectMode() -> Finding {
        guard let obstacle = ConnectMode.obstacle() else {
            return .ok("'slowlane with' redirects the connections of every program (connect mode)")
        }
        return .limitation(
            "'slowlane with' reaches only programs that use proxy variables: \(obstacle)",
            remedy: "use Linux on x86-64 or arm64; in a container, allow seccomp and pidfd_getfd")
    }

    private static func capture() -> Finding {
        do {
            return .ok("'slowlane capture' uses \(try LiveCapture.libraryVersion())")
        } catch .noLibrary(let reason) {
            return .limitation("'slowlane capture' cannot load libpcap: \(reason)", remedy: LiveCapture.installation)
        } catch {
            return .limitation("'slowlane capture' does not work: \(error)", remedy: "please report this")
        }
    }

    private static func network() -> Finding {
        let addresses = LocalAddresses.reachable(through: "0.0.0.0")
        return addresses.isEmpty
            ? .limitation(
                "the loopback interface is the only network interface with an IPv4 address",
                remedy: "connect this machine to the network of the phone that is to use the proxy")
            : .ok("other devices can connect to \(addresses.joined(separator: " or ")) with '--listen 0.0.0.0:PORT'")
    }
}
