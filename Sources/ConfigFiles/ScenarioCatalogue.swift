/// The scenarios that come with the program, and those in files.
public enum ScenarioCatalogue {
    /// Why a scenario could not be had.
    public enum Failure: Error, CustomStringConvertible {
        /// No built-in scenario has that name.
        case unknown(name: String, nearest: [String])
        /// The file could not be read.
        case unreadable(path: String, reason: String)
        /// The file was read and refused.
        case refused(FileError)

        public var description: String {
            switch self {
            case .unknown(let name, let nearest):
                let guess = nearest.isEmpty ? "" : "; did you mean \(nearest.joined(separator: ", "))?"
                return
                    "no scenario is called '\(name)'\(guess) (built in: \(ScenarioCatalogue.names.joined(separator: ", ")); "
                    + "a file is given by its path, as ./\(name).yaml)"
            case .unreadable(let path, let reason): return "\(path): cannot be read: \(reason)"
            case .refused(let error): return error.description
            }
        }
    }

    /// The built-in files; SwiftPM drops what cannot begin an identifier from their names.
    private static let sources: [(id: String, bytes: [UInt8])] = [
        ("create-offline-then-heal", PackageResources.create_offline_then_heal_yaml),
        ("edit-conflict-after-subway", PackageResources.edit_conflict_after_subway_yaml),
        ("create-retried-after-lost-response", PackageResources.create_retried_after_lost_response_yaml),
    ]

    /// The built-in scenarios' names.
    public static let names = sources.map(\.id)

    /// The scenario of a built-in name, or of the file at a path.
    public static func scenario(_ nameOrPath: String) throws(Failure) -> ScenarioFile {
        let text: String
        if ProfileCatalogue.isPath(nameOrPath) {
            do {
                text = try TextFile.read(nameOrPath, bytesMax: YAMLReader.bytesMax)
            } catch {
                throw .unreadable(path: nameOrPath, reason: error.reason)
            }
        } else if let source = sources.first(where: { $0.id == nameOrPath }) {
            text = String(decoding: source.bytes, as: UTF8.self)
        } else {
            throw .unknown(name: String(nameOrPath.prefix(60)), nearest: NearestName.of(nameOrPath, in: names))
        }
        do {
            return try ScenarioFile(parsing: text, file: nameOrPath)
        } catch {
            throw .refused(error)
        }
    }
}
