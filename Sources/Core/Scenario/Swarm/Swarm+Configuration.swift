internal import Determinism
internal import LinkModel

/// The draw of the configuration.
extension Swarm {
    /// Returns the configuration of a seed.
    public func configuration(seed: UInt64) -> SwarmConfiguration {
        let draws = SwarmDraws(seed: seed)
        var result = SwarmConfiguration(
            seed: seed, contract: base.contract, tokenLife: base.tokenLife, policy: base.policy)
        result.contract = contract(draws)
        result.classes = classes(draws, contract: result.contract)
        if parts.contains(.config) {
            result.tokenLife = result.classes.contains(.tokenExpiry) ? tokenLife(draws) : nil
            // Rejected credentials matter most to clients that can renew them.
            if result.classes.contains(.unauthorized), result.tokenLife == nil, canExpire(result.contract) {
                result.tokenLife = Self.longTokenLife
            }
            if result.classes.contains(.shortDelays) { result.policy = policy(draws) }
        }
        if parts.contains(.network) {
            result.links = base.devices.map { ($0.name, workingLinks(of: $0.name, draws).map(\.name)) }
            if result.classes.contains(.departure) {
                var random = draws.stream("departure")
                result.departed = random.pick(base.devices.filter(\.isRestored)).name
            }
        }
        if parts.contains(.workload) { drawWorkload(&result, draws) }
        return result
    }

    /// The part of the seeds that have a class towards which the exploration leans.
    private static let leaningRate = 0.9

    private func contract(_ draws: SwarmDraws) -> String {
        guard parts.contains(.config), base.server == .builtIn else { return base.contract }
        var random = draws.stream("contract")
        return random.pick(["orig", "compat", "strict"])
    }

    private func classes(_ draws: SwarmDraws, contract: String) -> Set<SwarmClass> {
        var found: Set<SwarmClass> = []
        for entry in SwarmClass.allCases where parts.contains(entry.part) {
            // The file's own steps may start clients.
            if entry.kills && !parts.contains(.workload) { continue }
            if entry == .departure && !canDepart { continue }
            // The expectations of scenarios with apps begin with what is shown.
            if entry == .firstPull && !base.apps.isEmpty { continue }
            if entry == .tokenExpiry && !canExpire(contract) { continue }
            if entry == .reusedIDs && (contract == "orig" || base.server != .builtIn || base.writers.isEmpty) {
                continue
            }
            var random = draws.stream("class/\(entry.rawValue)")
            if random.bool(probability: leaning.contains(entry) ? Self.leaningRate : 0.5) { found.insert(entry) }
        }
        return found
    }

    /// The lifetime of access tokens that do not expire in a run.
    private static let longTokenLife = Nanoseconds.seconds(3600)

    /// Whether the server has access tokens.
    private func canExpire(_ contract: String) -> Bool { contract != "orig" && base.server == .builtIn }

    private func tokenLife(_ draws: SwarmDraws) -> Nanoseconds {
        var random = draws.stream("tokens")
        return random.pick([.seconds(15), .seconds(60), .seconds(200)])
    }

    private func policy(_ draws: SwarmDraws) -> Scenario.ClientSettings {
        var settings = base.policy
        func value<Value>(_ name: String, _ values: [Value]) -> Value? {
            var random = draws.stream("policy/\(name)")
            return random.bool(probability: 0.5) ? random.pick(values) : nil
        }
        settings.firstDelay = value("first-delay", [.milliseconds(200), .milliseconds(500)]) ?? settings.firstDelay
        settings.longestDelay = value("longest-delay", [.seconds(2), .seconds(8)]) ?? settings.longestDelay
        settings.poll = value("poll", [.seconds(5), .seconds(20)]) ?? settings.poll
        settings.timeout = value("timeout", [.seconds(3), .seconds(8)]) ?? settings.timeout
        settings.largeBytes = value("large", [1, 64]) ?? settings.largeBytes
        return settings
    }

    private func drawWorkload(_ result: inout SwarmConfiguration, _ draws: SwarmDraws) {
        func draw<Value>(_ name: String, _ values: [Value]) -> Value {
            var random = draws.stream("workload/\(name)")
            return random.pick(values)
        }
        result.noteCount = draw("notes", [1, 2, 3, 4, 6, 8])
        result.mix = [
            .init(.create, weight: draw("create", [0, 1, 2, 4])), .init(.edit, weight: draw("edit", [2, 4, 6])),
            .init(.delete, weight: draw("delete", [0, 1, 2])), .init(.sync, weight: draw("sync", [0, 1, 2])),
        ]
        result.writerShare = base.writers.isEmpty ? 0 : draw("writers", [0, 1, 2, 4])
        result.burst = draw("burst", [1, 1, 1, 3, 8])
        result.chainShare = draw("chains", [0, 4, 8])
        result.textBytesMax = draw("text", [16, 16, 64, 64, 256, 2_000, 20_000])
        result.resolvesAfter = draw("resolve", [nil, .zero, .seconds(3), .seconds(20)])
        if result.classes.contains(.kills) { result.killCount = draw("kills", [1, 2, 4, 8]) }
    }
}
