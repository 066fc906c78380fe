internal import Foundation

extension LiveCapture {
    /// Reads the connections to a port on a thread of its own, until ``stop()`` is called or a time has passed.
    ///
    /// - Parameters:
    ///   - port: The server's port.
    ///   - readsHTTP: Whether to parse HTTP exchanges.
    ///   - limit: The longest time; `nil` for no limit.
    ///   - onEvent: Called with each event, on the thread. While it blocks, the kernel drops packets and counts them.
    /// - Returns: The packet counters.
    /// - Throws: A ``CaptureError``.
    public func readConnections(
        toPort port: UInt16, readsHTTP: Bool, for limit: Duration?, onEvent: @escaping @Sendable (CaptureEvent) -> Void
    ) async throws -> Counts {
        let timing = Task {
            guard let limit else { return }
            try await Task.sleep(for: limit)
            stop()
        }
        defer { timing.cancel() }
        return try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { [self] in
                continuation.resume(
                    with: Result { try readConnections(toPort: port, readsHTTP: readsHTTP, onEvent) })
            }
        }
    }

    private func readConnections(
        toPort port: UInt16, readsHTTP: Bool, _ onEvent: (CaptureEvent) -> Void
    ) throws -> Counts {
        var reader = ConnectionReader(port: port, readsHTTP: readsHTTP)
        return try run { frame, time in
            guard let segment = TCPSegment(frame, linkType: linkType) else { return }
            for event in reader.process(segment, at: time) { onEvent(event) }
        }
    }
}
