internal import CommandSupport

/// The display of progress while an operation lasts: on one line of a terminal, or line by line.
struct ProgressTicker: Sendable {
    private let console: Console
    private let report: @Sendable (Duration) -> String?

    /// The interval at which the progress is examined.
    private static let interval = Duration.milliseconds(100)

    /// Creates the display.
    ///
    /// - Parameter report: Returns the report that is due at a time from the start; `nil` if none is.
    init(_ console: Console, report: @escaping @Sendable (Duration) -> String?) {
        self.console = console
        self.report = report
    }

    /// Prints the progress while an operation lasts, unless it is hidden.
    func run<Value>(isHidden: Bool, during operation: () async throws -> Value) async throws -> Value {
        let ticker = isHidden ? nil : Task { await repeatReports() }
        let result: Result<Value, any Error>
        do { result = .success(try await operation()) } catch { result = .failure(error) }
        ticker?.cancel()
        await ticker?.value
        console.clearStatus()
        return try result.get()
    }

    /// Prints reports when they are due, until the task is cancelled.
    private func repeatReports() async {
        let start = ContinuousClock.now
        while !Task.isCancelled {
            try? await Task.sleep(for: Self.interval)
            guard !Task.isCancelled, let line = report(ContinuousClock.now - start) else { continue }
            if console.hasStatusLine { console.show(status: line) } else { console.print(line, to: .progress) }
        }
    }
}
