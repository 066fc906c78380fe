internal import ArgumentParser
internal import CommandSupport

/// Work that a signal interrupts.
enum Interruption {
    /// Returns the exit status of work; throws ``ExitStatus/interrupted`` if a signal cancels it.
    static func run(_ console: Console, _ work: @escaping @Sendable () async throws -> Int32) async throws -> Int32 {
        let events = ForegroundEvents()
        let running = Task { try await work() }
        let watching = Task {
            if await events.next() != nil { running.cancel() }
        }
        defer { watching.cancel() }
        do {
            return try await running.value
        } catch {
            console.clearStatus()
            console.print("interrupted", to: .progress)
            throw ExitStatus.interrupted
        }
    }
}
