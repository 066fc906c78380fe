internal import NIOConcurrencyHelpers
internal import NIOCore
internal import Synchronization

#if os(Linux)
    internal import CRelay

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// A thread that carries the bytes of connections for which nothing is in force from socket to socket, past SwiftNIO and
    /// past the model: `splice(2)` moves them without copying them to us.
    ///
    /// All proxies of the process share a few of them: a proxy's clients are let in by one, and carried by whichever carries
    /// least. Whoever wants something of one leaves a job.
    final class Relay: Sendable {
        /// Its place among all.
        let index: Int
        /// Not a `Mutex`: where that is contended it does not say to ThreadSanitizer what came before what.
        private let jobs = NIOLockedValueBox<[@Sendable (RelayLoop) -> Void]>([])
        /// Connections that it carries, with those that are on their way to it.
        private let load = Atomic<Int>(0)
        /// Written to when there are jobs.
        private let bell: CInt

        /// One for each processor, but not more than four; made when they are first asked for. None if the system gives none.
        static let all: [Relay] = {
            var relays: [Relay] = []
            for index in 0..<min(System.coreCount, 4) {
                guard let relay = try? Relay(index) else { break }
                relays.append(relay)
            }
            return relays
        }()

        private static let ports = Atomic<UInt32>(0)
        private static let proxies = Atomic<Int>(0)

        /// Who lets the next proxy's clients in.
        static func forNextProxy() -> Relay? {
            all.isEmpty ? nil : all[proxies.add(1, ordering: .relaxed).oldValue % all.count]
        }

        private init(_ index: Int) throws {
            self.index = index
            let epoll = epoll_create1(CInt(EPOLL_CLOEXEC))
            guard epoll >= 0 else { throw IOError(errnoCode: errno, reason: "epoll_create1") }
            bell = eventfd(0, CInt(EFD_NONBLOCK) | CInt(EFD_CLOEXEC))
            guard bell >= 0 else {
                SystemSocket.close(epoll)
                throw IOError(errnoCode: errno, reason: "eventfd")
            }
            var thread = pthread_t()
            let start = Unmanaged.passRetained(Start(relay: self, epoll: epoll))
            let code = pthread_create(
                &thread, nil,
                { argument in
                    let start = Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue()
                    RelayLoop(start.relay, epoll: start.epoll).run()
                }, start.toOpaque())
            guard code == 0 else {
                start.release()
                SystemSocket.close(epoll)
                SystemSocket.close(bell)
                throw IOError(errnoCode: code, reason: "pthread_create")
            }
            pthread_detach(thread)
        }

        /// What the thread begins with.
        private final class Start: Sendable {
            let relay: Relay
            let epoll: CInt

            init(relay: Relay, epoll: CInt) {
                self.relay = relay
                self.epoll = epoll
            }
        }

        /// A name for a port that nothing has had.
        static func newPort() -> RelayToken {
            RelayToken(.listener, relay: 0, index: 0, generation: ports.add(1, ordering: .relaxed).newValue)
        }

        /// Who is to carry one more connection that has come to this one: itself, unless another carries clearly less, since to
        /// go there costs a wake. The connection counts from now on, until ``hasLess()``.
        func forOneMore(mayBeAnother: Bool) -> Relay {
            var (chosen, least) = (self, load.load(ordering: .relaxed))
            for other in Self.all where mayBeAnother && other !== self {
                let load = other.load.load(ordering: .relaxed)
                if load + load / 4 < least { (chosen, least) = (other, load) }
            }
            chosen.load.add(1, ordering: .relaxed)
            return chosen
        }

        /// It carries one connection less.
        func hasLess() { load.subtract(1, ordering: .relaxed) }

        /// Has something done on the relay's thread.
        func perform(_ job: @escaping @Sendable (RelayLoop) -> Void) {
            let isFirst = jobs.withLockedValue { jobs in
                jobs.append(job)
                return jobs.count == 1
            }
            if isFirst { eventfd_write(bell, 1) }
        }

        /// Asks the relay's thread something; the answer comes to `eventLoop`.
        func ask<Answer: Sendable>(
            on eventLoop: any EventLoop, _ question: @escaping @Sendable (RelayLoop) -> Answer
        ) -> EventLoopFuture<Answer> {
            let promise = eventLoop.makePromise(of: Answer.self)
            perform { promise.succeed(question($0)) }
            return promise.futureResult
        }

        /// Whether somebody waits for the thread.
        var hasJobs: Bool { jobs.withLockedValue { !$0.isEmpty } }

        /// The jobs there are, with the bell silent until the next; for the thread.
        func takeJobs() -> [@Sendable (RelayLoop) -> Void] {
            jobs.withLockedValue { jobs in
                defer { jobs = [] }
                return jobs
            }
        }

        /// What wakes the thread.
        func listenToBell(_ epoll: CInt, as token: UInt64) {
            var event = epoll_event()
            event.events = EPOLLIN.rawValue | EPOLLET.rawValue
            event.data.u64 = token
            epoll_ctl(epoll, EPOLL_CTL_ADD, bell, &event)
        }
    }
#else
    /// There is none here: everything goes through SwiftNIO.
    final class Relay: Sendable {
        static let all: [Relay] = []

        static func forNextProxy() -> Relay? { nil }

        static func newPort() -> RelayToken { RelayToken(.listener, relay: 0, index: 0, generation: 0) }

        func perform(_ job: @escaping @Sendable (RelayLoop) -> Void) {}

        func ask<Answer: Sendable>(
            on eventLoop: any EventLoop, _ question: @escaping @Sendable (RelayLoop) -> Answer
        ) -> EventLoopFuture<Answer> {
            eventLoop.makeFailedFuture(IOError(errnoCode: 0, reason: "no relay"))
        }
    }
#endif
