/// The built-in scenarios, and those in files.
public enum ScenarioCatalogue {
    /// The reason why a scenario is not available.
    public enum LookupError: Error, CustomStringConvertible {
        /// No built-in scenario has that name.
        case unknown(name: String, nearest: [String])
        /// The file could not be read.
        case unreadable(path: String, reason: String)
        /// The file has errors.
        case invalid(FileError)

        public var description: String {
            switch self {
            case .unknown(let name, let nearest):
                let hint = nearest.isEmpty ? "" : "; did you mean \(nearest.joined(separator: ", "))?"
                return
                    "no scenario is called '\(name)'\(hint) (built in: \(ScenarioCatalogue.names.joined(separator: ", ")); "
                    + "name a file by its path, such as ./\(name).yaml)"
            case .unreadable(let path, let reason): return "cannot read \(path): \(reason)"
            case .invalid(let error): return error.description
            }
        }
    }

    /// The built-in files.
    private static let sources = EmbeddedFile.all(in: "scenarios")

    /// The names of the built-in scenarios.
    public static let names = sources.map(\.name)

    /// Returns whether the file at a path claims to be a scenario: whether a line begins with the key `scenario`.
    public static func isScenario(atPath path: String) -> Bool {
        (try? TextFile.readBytes(path, bytesMax: YAMLReader.bytesMax)).map { ScenarioFile.isScenario($0) } ?? false
    }

    /// Returns the scenario given by a built-in name or the path of a file.
    public static func scenario(_ nameOrPath: String) throws(LookupError) -> ScenarioFile {
        let text: String
        if ProfileCatalogue.isPath(nameOrPath) {
            do {
                text = try TextFile.read(nameOrPath, bytesMax: YAMLReader.bytesMax)
            } catch {
                throw .unreadable(path: nameOrPath, reason: error.reason)
            }
        } else if let source = sources.first(where: { $0.name == nameOrPath }) {
            text = source.text
        } else {
            throw .unknown(name: String(nameOrPath.prefix(60)), nearest: NearestName.of(nameOrPath, in: names))
        }
        do {
            return try ScenarioFile(parsing: text, file: nameOrPath)
        } catch {
            throw .invalid(error)
        }
    }
}
