internal import Client
internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import Proxy
internal import Scenario
internal import Synchronization
internal import Wire
internal import Worlds

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A program that is the server of a run. A thread reads its output and notices its end.
final class ProgramServer: Sendable {
    let address: LiveServer.Address
    private let errors = OutputTailBox()
    private let state = Mutex(State())
    private let data: String

    private struct State {
        var isStopping = false
        /// How the program has ended by itself.
        var end: String?
        var waiting: CheckedContinuation<Void, Never>?
        var hasThreadEnded = false
    }

    /// The longest time from the start of the program until it is ready.
    static let readyMax = Duration.seconds(15)
    private static let readyInterval = Duration.milliseconds(50)
    private static let probeTimeout = TimeAmount.seconds(1)
    /// The time between two looks at the program's output, in milliseconds.
    private static let waitMilliseconds: CInt = 50

    private init(_ address: LiveServer.Address, data: String) {
        self.address = address
        self.data = data
    }

    /// Starts the program on a free port (`PORT`), or the port of the URL `ready`, and waits until it is ready.
    static func start(
        _ program: Scenario.Program, ready: String?, _ world: LiveRunWorld, _ folder: RunFolder
    ) async throws -> ProgramServer {
        let url = ready.flatMap { ServerURL($0) }
        var port = url?.port
        if port == nil { port = try await unusedPort() }
        let endpoint = Endpoint(host: url?.host ?? "127.0.0.1", port: port ?? 0)
        let data = folder.url.appendingPathComponent("server", isDirectory: true)
        try FileManager.default.createDirectory(at: data, withIntermediateDirectories: false)
        let variables = [
            ("PORT", "\(endpoint.port)"), ("SLOWLANE_PORT", "\(endpoint.port)"), ("SLOWLANE_SEED", "\(world.seed)"),
            ("SLOWLANE_PASSWORD", RunServer.password), ("SLOWLANE_DATA", data.path),
        ]
        let server = ProgramServer(LiveServer.Address(endpoint: endpoint), data: data.path)
        let process = SendableProcess(
            try ChildProgram(program, variables: variables.map { (name: $0.0, value: $0.1) }))
        Thread.detachNewThread { server.watch(process.value, world) }
        let title = "the server (\(program.arguments.joined(separator: " ").prefix(80)))"
        do {
            try await server.waitUntilReady(url.map { $0.path.isEmpty ? "/" : $0.path } ?? ready, title)
        } catch {
            await server.stop()
            throw error
        }
        return server
    }

    /// Hands a process over to its thread.
    private struct SendableProcess: @unchecked Sendable {
        let value: ChildProgram

        init(_ value: ChildProgram) { self.value = value }
    }

    private static func unusedPort() async throws -> Int {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = listener.localAddress?.port
        try await listener.close()
        return port ?? 0
    }

    // MARK: The thread

    private func watch(_ process: ChildProgram, _ world: LiveRunWorld) {
        BlockedSignals.blockPipe()
        while !state.withLock(\.isStopping) {
            let end = process.takeEnd()
            read(process)
            if let end {
                let reason = "the server \(Scenario.Program.endedByItself): \(end.text)"
                state.withLock { $0.end = reason }
                world.abort(reason)
                break
            }
            var files = [process.output, process.errors].filter { $0 >= 0 }.map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            _ = poll(&files, nfds_t(files.count), Self.waitMilliseconds)
        }
        read(process)
        process.kill()
        StrayProcesses.kill(variable: "SLOWLANE_DATA", value: data)
        let waiting = state.withLock { state in
            state.hasThreadEnded = true
            return state.waiting.take()
        }
        waiting?.resume()
    }

    private func read(_ process: ChildProgram) {
        // The standard output of servers is a log too.
        for _ in 0..<16 { if case .bytes(let bytes) = process.readOutput() { add(bytes) } else { break } }
        for _ in 0..<16 { if case .bytes(let bytes) = process.readErrors() { add(bytes) } else { break } }
    }

    private func add(_ bytes: [UInt8]) { errors.value.withLock { $0.add(bytes) } }

    /// The last lines of the program's output.
    var output: ProgramOutput? {
        let lines = errors.value.withLock(\.lines)
        return lines.isEmpty ? nil : ProgramOutput(name: "server", lines: lines)
    }

    /// Kills the program.
    func stop() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                state.isStopping = true
                if !state.hasThreadEnded { state.waiting = continuation }
                return state.hasThreadEnded
            }
            if hasEnded { continuation.resume() }
        }
    }

    // MARK: Readiness

    /// - Parameter path: The path of a resource; `nil` if an open port is enough.
    private func waitUntilReady(_ path: String?, _ title: String) async throws {
        let start = ContinuousClock.now
        var last = "no connection"
        while true {
            if let end = state.withLock(\.end) {
                throw failure("\(title) ended before it was ready; \(end)")
            }
            do {
                guard let path else { return try await connect() }
                let status = try await probe(path)
                if status < 500 && status != 404 { return }
                last = "status \(status)"
            } catch let error as CancellationError {
                throw error
            } catch {
                last = "no connection to port \(address.endpoint.port)"
            }
            guard ContinuousClock.now - start < Self.readyMax else {
                throw failure("\(title) was not ready within 15 s (\(path ?? "port"): \(last))")
            }
            try await Task.sleep(for: Self.readyInterval)
        }
    }

    private func failure(_ text: String) -> ProgramError {
        let lines = output?.lines ?? []
        return ProgramError(.notStarted, ([text] + lines.map { "  output: \($0)" }).joined(separator: "\n"))
    }

    private func connect() async throws {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(Self.probeTimeout).connect(host: address.endpoint.host, port: address.endpoint.port).get()
        try await channel.close()
    }

    private func probe(_ path: String) async throws -> Int {
        let credentials = Base64.encode(Array("ready:\(RunServer.password)".utf8))
        var call = HTTPCall(
            host: address.endpoint.host, port: address.endpoint.port, authorization: "Basic \(credentials)")
        call.timeout = Self.probeTimeout
        return try await call.execute(SyncRequestContent(method: "GET", target: path, headers: [], body: [])).status
    }
}
