internal import ArgumentParser
internal import CommandSupport

/// Work that a signal interrupts.
enum Interruption {
    /// A time limit of work.
    struct Limit: Sendable {
        let seconds: Double
        /// Called before the work is cancelled because the time is over.
        let expired: @Sendable () -> Void
    }

    /// Does work and throws its exit status unless that is 0. A signal cancels the work, which then removes its temporary
    /// folders, and ``ExitStatus/interrupted`` is thrown; a second signal ends the process.
    static func run(
        _ console: Console, limit: Limit? = nil, _ work: @escaping @Sendable () async throws -> Int32
    ) async throws {
        let events = ForegroundEvents()
        let running = Task { try await work() }
        let watching = Task {
            if await events.next() != nil { running.cancel() }
        }
        let timer = limit.map { limit in
            Task {
                try await Task.sleep(for: .seconds(limit.seconds))
                limit.expired()
                running.cancel()
            }
        }
        defer {
            watching.cancel()
            timer?.cancel()
        }
        let status: Int32
        do {
            status = try await running.value
        } catch {
            console.clearStatus()
            console.print("interrupted", to: .progress)
            throw ExitStatus.interrupted
        }
        if status != 0 { throw ExitCode(status) }
    }
}
