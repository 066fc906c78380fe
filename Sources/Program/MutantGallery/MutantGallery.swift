//  MutantGallery: the mutants of this program, which 'slowlane mutation-test', 'explore --all-mutants' and '--mutant' run.
//
//  Owns: each mutant's name, description and detector, and the change of behaviour that is its defect.
//
//  Does not own: the behaviours (Client, the apps, NotesService), the worlds in which they run, the proof that scenarios detect
//  mutants (ScenarioRunner).

internal import Client
internal import Scenario
public import ScenarioRunner
internal import Worlds

/// The mutants of this program.
public enum MutantGallery {
    /// All mutants: those of the sync client, of the notes server, and of the apps.
    public static let mutants: [RunMutant] =
        legacy + identity + responses + retries + tokens + sending + views + queue + index + server + expense + reader
        + field

    private static let named = Dictionary(uniqueKeysWithValues: mutants.map { ($0.name, $0) })

    /// Returns the mutant with a name; `nil` if there is none.
    public static func mutant(named name: String) -> RunMutant? { named[name] }

    /// The mutant with a name of the gallery.
    public static subscript(name: String) -> RunMutant {
        guard let mutant = named[name] else { preconditionFailure("no mutant is called '\(name)'") }
        return mutant
    }
}

extension RunMutant {
    /// Creates a mutant of the sync client.
    static func client(
        _ name: String, _ defect: String, origin: String, by detector: Detector,
        broken: Scenario.Invariant = .noLostWrite, in runs: [String], _ adapt: @escaping RunBehavior.ClientAdaptation
    ) -> RunMutant {
        RunMutant(name, of: .client, defect, origin: origin, by: detector, broken: broken, in: runs) {
            $0.adaptClients(adapt)
        }
    }

    /// Creates a mutant of the notes server.
    static func server(
        _ name: String, _ defect: String, origin: String, by detector: Detector,
        broken: Scenario.Invariant = .noSilentOverwrite, in runs: [String],
        _ change: @escaping @Sendable (inout RunBehavior) -> Void
    ) -> RunMutant {
        RunMutant(
            name, of: .server, defect, origin: origin, by: detector, broken: broken, in: runs, change: change)
    }
}

extension AppState {
    /// Returns the state without the values whose keys begin with a prefix.
    func without(_ prefix: String) -> AppState {
        AppState(values(under: "").filter { !$0.key.hasPrefix(prefix) })
    }
}
