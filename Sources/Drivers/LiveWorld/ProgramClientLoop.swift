internal import Determinism
internal import Foundation
internal import Scenario
internal import Synchronization
internal import Worlds

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The thread of a program that is a device's client: it owns the process and the protocol.
final class ProgramClientLoop: Sendable {
    /// What the thread is to do.
    enum Order: Sendable {
        case prepare(CheckedContinuation<Bool, Never>)
        case start(ScenarioDirector.ActID, LiveRunWorld.Order)
        case kill(ScenarioDirector.ActID, LiveRunWorld.Order)
        case perform(ScenarioDirector.ActID, LiveRunWorld.Order, Scenario.Action)
        case notify(AdapterAct)
        /// The number of exchanges that have not ended.
        case exchanges(Int)
        case stop(CheckedContinuation<Void, Never>)
    }

    private struct Queue {
        var orders: [Order] = []
        var hasEnded = false
    }

    private let name: String
    private let program: Scenario.Program
    private let adapter: Scenario.Device.Adapter
    private let variables: [(name: String, value: String)]
    private let seed: UInt64
    private let queue = Mutex(Queue())
    private let errors = OutputTailBox()
    private let wakeup: WakeupPipe

    init(
        _ name: String, _ program: Scenario.Program, _ adapter: Scenario.Device.Adapter,
        variables: [(name: String, value: String)], seed: UInt64
    ) throws {
        self.name = name
        self.program = program
        self.adapter = adapter
        self.variables = variables
        self.seed = seed
        wakeup = try WakeupPipe()
    }

    /// The last lines of standard error.
    var errorLines: [String] { errors.value.withLock(\.lines) }

    /// Starts the thread.
    func start(for client: ProgramClient) {
        Thread.detachNewThread { [self] in
            BlockedSignals.blockPipe()
            var session = ProgramSession(name, program, adapter, variables, seed: seed, errors: errors, client)
            while true {
                for order in takeOrders() {
                    if case .stop(let continuation) = order {
                        session.end()
                        for left in end() { Self.drop(left) }
                        continuation.resume()
                        return
                    }
                    session.execute(order)
                }
                session.wait(wakeup)
            }
        }
    }

    private static func drop(_ order: Order) {
        switch order {
        case .prepare(let continuation): continuation.resume(returning: false)
        case .stop(let continuation): continuation.resume()
        case .start, .kill, .perform, .notify, .exchanges: break
        }
    }

    private func takeOrders() -> [Order] {
        queue.withLock { queue in
            defer { queue.orders = [] }
            return queue.orders
        }
    }

    private func end() -> [Order] {
        queue.withLock { queue in
            queue.hasEnded = true
            defer { queue.orders = [] }
            return queue.orders
        }
    }

    /// Gives the thread an order.
    func post(_ order: Order) {
        let isQueued = queue.withLock { queue in
            if queue.hasEnded { return false }
            queue.orders.append(order)
            return true
        }
        if isQueued { wakeup.wake() } else { Self.drop(order) }
    }

    /// Starts the program, lets it fetch the server's notes, and kills it. Returns `false` if the run has ended.
    func prepare() async -> Bool { await withCheckedContinuation { post(.prepare($0)) } }

    /// Kills the program and ends the thread.
    func stop() async { await withCheckedContinuation { post(.stop($0)) } }
}

/// A pipe that ends a wait for files.
final class WakeupPipe: Sendable {
    let exit: CInt
    private let entry: CInt

    init() throws {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        (exit, entry) = (ends[0], ends[1])
    }

    deinit {
        close(exit)
        close(entry)
    }

    /// Ends the current wait, or the next one.
    func wake() {
        var byte: UInt8 = 0
        _ = write(entry, &byte, 1)
    }

    /// Removes what ``wake()`` has written.
    func clear() {
        var bytes = [UInt8](repeating: 0, count: 256)
        while read(exit, &bytes, bytes.count) == bytes.count {}
    }
}

/// Signals of the calling thread.
enum BlockedSignals {
    /// Blocks SIGPIPE: a write to a closed pipe fails instead.
    static func blockPipe() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}
