internal import HTTPTypes
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// A pool of threads for work whose time grows with the size of a request or a response: large bodies, long lists,
/// snapshots, recordings.
///
/// Requests run on the threads of Swift concurrency, of which there are as many as processors. Work of many milliseconds
/// there would delay every other request. The pool leaves processors to them; its work runs in the order of the calls.
/// A connection has one request at a time, so that no more work waits than there are connections.
final class WorkPool: Sendable {
    /// The maximum number of bytes that are processed at once, on the caller's thread: at most a few milliseconds of work.
    static let inlineBytesMax = 1024
    /// The maximum number of threads.
    private static let threadsMax = 4

    /// The number of threads.
    let threadCount: Int
    private let threads: NIOThreadPool
    private let pending = Atomic<Int>(0)

    /// The number of calls of ``run(bytes:_:)`` that wait for a thread, or whose work runs on one.
    var pendingCount: Int { pending.load(ordering: .relaxed) }

    /// - Parameter threadCount: The number of threads; half of the processors by default.
    init(threadCount: Int = max(1, min(threadsMax, System.coreCount / 2))) {
        self.threadCount = threadCount
        threads = NIOThreadPool(numberOfThreads: threadCount)
        threads.start()
    }

    deinit { threads.shutdownGracefully { _ in } }

    /// Returns the result of work; it runs on a thread of the pool unless it is small.
    ///
    /// If the caller's task is cancelled while the work waits for a thread, it does not run.
    ///
    /// - Parameter bytes: An estimate of the number of bytes that are read or written.
    func run<Value: Sendable>(
        bytes: Int, _ work: @escaping @Sendable () throws(APIError) -> Value
    ) async throws(APIError) -> Value {
        if bytes <= Self.inlineBytesMax { return try work() }
        pending.add(1, ordering: .relaxed)
        defer { pending.subtract(1, ordering: .relaxed) }
        let result: Result<Value, APIError>
        do {
            result = try await threads.runIfActive { Result { () throws(APIError) in try work() } }
        } catch {
            // Nobody reads the response.
            throw APIError(.serviceUnavailable, "the client has disconnected")
        }
        return try result.get()
    }
}
