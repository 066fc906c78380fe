import Client
import Expense
import GRDB
import HTTPSockets
import LiveClient
import Synchronization
import TestSupport
import Testing

/// The live driver of an app, without a network.
@Suite(.timeLimit(.minutes(20))) struct AppClientTests {
    /// The commits and views of a client.
    private final class Log: Sendable {
        private let commitCount = Mutex(0)
        private let views = Mutex<[AppView]>([])
        let stream: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation

        init() { (stream, continuation) = AsyncStream.makeStream() }

        func add(_ activity: ClientActivity<AppChange>) {
            if case .committed = activity { commitCount.withLock { $0 += 1 } }
            continuation.yield()
        }

        func show(_ view: AppView) {
            views.withLock { $0.append(view) }
            continuation.yield()
        }

        var commits: Int { commitCount.withLock { $0 } }

        /// The receiver in the form on the screen that was shown last.
        var receiver: String? { views.withLock { $0.last?.screen.fields["to"] } }
    }

    private static func start(_ path: String, _ log: Log) async throws -> AppClient {
        let target = ClientChannels.Target(host: "127.0.0.1", port: 1) { true }
        var configuration = AppClient.Configuration(target: target, storePath: path) { state in
            ClientMachine(
                engine: RunningApp(try ExpenseEngine(AppConfiguration(seed: 1), restoring: state)), host: "h",
                authorization: nil)
        }
        configuration.interface = NetworkInterface(isUp: false)
        return try await AppClient.start(configuration, onView: { log.show($0) }, onActivity: { log.add($0) })
    }

    @Test func aChangeThatCannotBeCommittedIsKeptAndShownWhenItIsDurable() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("x.db")
        let log = Log()
        let client = try await Self.start(path, log)
        try await client.perform(.call("transfer", nil, [:]))
        // A lock of another connection stands for a disk without space.
        var unsafe = Configuration()
        unsafe.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: path, configuration: unsafe)
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        try await client.perform(.call("fill", nil, ["to": "Bo"]))
        #expect(log.commits == 0 && log.receiver == nil, "what is not durable is not shown")
        try await other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
        for await _ in log.stream where log.receiver != nil { break }
        #expect(log.commits == 1 && log.receiver == "Bo")
        await client.kill()

        let again = Log()
        let second = try await Self.start(path, again)
        try await second.perform(.call("transfer", nil, [:]))
        #expect(again.receiver == "Bo", "the input survives the process")
        await second.kill()
    }

    @Test func aClientThatIsKilledEndsAndRefusesActs() async throws {
        let folder = try TemporaryFolder()
        let client = try await Self.start(folder.path("x.db"), Log())
        await client.kill()
        await client.kill()
        await #expect(throws: ClientStoppedError.self) { try await client.perform(.sync) }
    }

    @Test func aStoreThatCannotBeReadIsRefusedWithItsPlace() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("x.db")
        var change = AppChange()
        change.set("write/1", Array("{".utf8))
        let store = try AppStore(path: path)
        try store.commit(change)
        store.close()
        await #expect(throws: AppActError("the stored value 'write/1' cannot be read")) {
            try await Self.start(path, Log())
        }
    }
}
