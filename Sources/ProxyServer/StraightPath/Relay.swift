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
    /// All proxies of the process share it. Whoever wants something of it leaves a job.
    final class Relay: Sendable {
        /// Not a `Mutex`: where that is contended it does not say to ThreadSanitizer what came before what.
        private let jobs = NIOLockedValueBox<[@Sendable (RelayLoop) -> Void]>([])
        private let ports = Atomic<UInt32>(0)
        /// Written to when there are jobs.
        private let bell: CInt

        /// The relay, made when it is first asked for; `nil` if the system gives none.
        static let shared: Relay? = try? Relay()

        private init() throws {
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
        func newPort() -> RelayToken {
            RelayToken(.listener, index: 0, generation: ports.add(1, ordering: .relaxed).newValue)
        }

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
        static let shared: Relay? = nil

        func newPort() -> RelayToken { RelayToken(.listener, index: 0, generation: 0) }

        func perform(_ job: @escaping @Sendable (RelayLoop) -> Void) {}

        func ask<Answer: Sendable>(
            on eventLoop: any EventLoop, _ question: @escaping @Sendable (RelayLoop) -> Answer
        ) -> EventLoopFuture<Answer> {
            eventLoop.makeFailedFuture(IOError(errnoCode: 0, reason: "no relay"))
        }
    }
#endif
