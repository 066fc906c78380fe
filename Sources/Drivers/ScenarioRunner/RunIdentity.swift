internal import ConfigFiles
internal import LinkModel
internal import Scenario

/// What identifies a run in reports.
public struct RunIdentity: Sendable {
    /// The position in the plan, from 0.
    public let index: Int
    /// The scenario's name.
    public let scenario: String
    /// The variant's name; `nil` if the run is the scenario itself.
    public let variant: String?
    /// The name with the variant and the values of the matrix.
    public let fullName: String
    /// The built-in name or the path by which the scenario was selected.
    public let source: String
    /// The world.
    public let world: RunWorld
    /// The random seed.
    public let seed: UInt64
    /// The names of the mutants, separated by commas; `nil` if there are none.
    public let mutants: String?
    /// The networks of the devices in one line.
    public let network: String
    /// The API contract of the built-in notes server; `nil` for another server.
    public let contract: String?
    /// The command that repeats the run, in words.
    public let replay: [String]
    /// Whether the run must fail.
    public let isCanary: Bool
}

extension RunIdentity {
    /// Creates the identity of a planned run.
    init(_ run: PlannedRun) {
        self.init(
            index: run.index, scenario: run.scenario.name, variant: run.scenario.variant,
            fullName: run.scenario.fullName, source: run.source, world: run.world, seed: run.seed,
            mutants: run.mutantNames, network: Self.network(run.scenario.devices),
            contract: run.scenario.server == .builtIn ? run.scenario.contract : nil,
            replay: ReplayCommand.arguments(run), isCanary: run.isCanary)
    }

    /// The maximum number of links that are listed for a device.
    private static let linksMax = 20

    /// Returns networks in one line, such as `A: 0s 3g, 9s 100-loss; B: 0s wifi`.
    private static func network(_ devices: [Scenario.Device]) -> String {
        devices.map { device in
            let links = device.network.prefix(linksMax).map { entry in
                let names = entry.phase.links.map(\.name).joined(separator: "/")
                return "\(QuantityText.time(entry.start)) \(names)"
            }
            let more = device.network.count - links.count
            return "\(device.name): " + (links + (more > 0 ? ["\(more) more"] : [])).joined(separator: ", ")
        }.joined(separator: "; ")
    }

    /// The command that repeats the run, for a shell.
    var replayText: String { replay.map(ReplayCommand.quoted).joined(separator: " ") }
}
