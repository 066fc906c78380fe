//  LiveWorld: runs of scenarios in real time.
//
//  Owns: the notes server of a run, a proxy and a client for each device, and the writers, on free ports of the
//  loopback interface; the folder with their files; the execution of the director's orders; host pauses.
//
//  Does not own: the plan and the meaning of histories (Scenario), changes and requests (Worlds), files of
//  scenarios (ConfigFiles).

internal import Client
internal import Foundation
public import Scenario
public import Worlds

/// A run of a scenario in real time: one notes server, and one proxy and one client per device, on free ports of the
/// loopback interface, with all files in a temporary folder.
public enum LiveRun {
    /// An act of a user during a run that the scenario does not have.
    public struct UserAct: Sendable {
        let device: String
        let action: Scenario.Action

        /// Creates an act.
        public init(device: String, action: Scenario.Action) {
            self.device = device
            self.action = action
        }
    }

    /// Runs a scenario.
    ///
    /// - Parameters:
    ///   - behavior: The behaviour of the clients and the server.
    ///   - seed: The random seed; the scenario's by default.
    ///   - acts: Acts of users besides those of the scenario. An act that is not possible, or comes after the last step,
    ///     has no consequences.
    ///   - onEvent: Called with each event of the history, in order.
    /// - Throws: A `SetupError`, an error of the system, or `CancellationError` if the task is cancelled.
    public static func run(
        _ scenario: Scenario, behavior: RunBehavior = RunBehavior(), seed: UInt64? = nil,
        acts: AsyncStream<UserAct>? = nil,
        onEvent: @escaping @Sendable (History.Entry) -> Void = { _ in }
    ) async throws -> RunResult {
        let seed = seed ?? scenario.seed
        let scenario = scenario.materialized(seed: seed)
        let folder = try RunFolder()
        defer { folder.remove() }
        let notes =
            scenario.server == .builtIn
            ? try RunServer(scenario, seed: seed, path: folder.path("server.db"), behavior: behavior.server) : nil
        let world = try LiveRunWorld(scenario, seed: seed, notes, showsPushNotices: behavior.showsPushNotices)
        let server = try await LiveServer.start(scenario, notes, world, folder)
        var outputs: [ProgramOutput] = []
        do {
            let users = acts.map { acts in Task { for await act in acts { world.perform(act) } } }
            defer { users?.cancel() }
            var address = server.address
            address.interception = try scenario.speaksTLS ? ServerInterception(scenario.tls, folder) : nil
            outputs = try await run(scenario, world, behavior, folder, address, onEvent)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
        let result = world.result
        return RunResult(
            verdict: result.verdict, history: result.history, eventCount: result.eventCount,
            outputs: outputs + (server.output.map { [$0] } ?? []))
    }

    /// Runs a scenario; returns the output of its devices' programs.
    private static func run(
        _ scenario: Scenario, _ world: LiveRunWorld, _ behavior: RunBehavior, _ folder: RunFolder,
        _ server: LiveServer.Address, _ onEvent: @escaping @Sendable (History.Entry) -> Void
    ) async throws -> [ProgramOutput] {
        var devices: [any LiveDevice] = []
        do {
            for device in scenario.devices {
                if device.runsProgram {
                    devices.append(try await ProgramClient(device, in: world, folder, server: server))
                } else if let app = device.client.app {
                    devices.append(
                        try await AppDriver(app, device, in: world, behavior, folder, server: server))
                } else {
                    devices.append(
                        try await DeviceDriver(
                            device, in: world, behavior, folder, server: server))
                }
            }
            let writers = scenario.writers.map { WriterDriver($0, in: world, server: server) }
            let monitor = HostPauseMonitor(folder.url) { world.record(.hostPause($0)) }
            defer { monitor.stop() }
            try await withThrowingTaskGroup(of: Void.self) { [devices] group in
                group.addTask { for await entry in world.entries { onEvent(entry) } }
                for device in devices {
                    group.addTask { for await order in world.orders(of: device.name) { await device.execute(order) } }
                }
                for writer in writers {
                    group.addTask { for await order in world.orders(of: writer.name) { await writer.execute(order) } }
                }
                do {
                    try await withTaskCancellationHandler {
                        try await world.run()
                    } onCancel: {
                        world.cancel()
                    }
                } catch {
                    // An order that is being executed may wait for its client.
                    for device in devices { await device.stop() }
                    throw error
                }
                try await group.waitForAll()
            }
        } catch {
            for device in devices { await device.stop() }
            throw error
        }
        for device in devices { await device.stop() }
        return devices.compactMap { ($0 as? ProgramClient)?.output }
    }
}
