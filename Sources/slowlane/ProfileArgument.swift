internal import ArgumentParser
internal import ConfigFiles
internal import LinkModel

extension Profile {
    /// The profile of a name or a path for a command's argument: tells what is wrong and ends with the right status.
    static func forArgument(_ text: String, _ console: Console) throws -> Profile {
        do {
            return try ProfileCatalogue.profile(text)
        } catch {
            throw error.told(to: console)
        }
    }
}

extension TimelineFile {
    /// The timeline of a command's argument: tells what is wrong and ends with the right status.
    static func forArgument(_ text: String, _ console: Console) throws -> TimelineFile {
        do {
            return try ProfileCatalogue.timeline(text)
        } catch {
            throw error.told(to: console)
        }
    }
}

extension ProfileCatalogue.LookupError {
    /// Says what is wrong; gives the status to end with.
    func told(to console: Console) -> ExitCode {
        console.print("error: \(self)", to: .progress)
        switch self {
        case .unknownProfile, .unknownTimeline, .isTimeline: return ExitStatus.usage
        case .unreadable, .invalid: return ExitStatus.invalidFile
        }
    }
}
