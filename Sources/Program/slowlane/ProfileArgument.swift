internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles

extension Profile {
    /// Returns the profile of an argument, a name or a path; prints an error and throws an exit status if there is
    /// none.
    static func forArgument(_ text: String, _ console: Console) throws -> Profile {
        do {
            return try ProfileCatalogue.profile(text)
        } catch {
            throw error.exitCode(reportingTo: console)
        }
    }
}

extension TimelineFile {
    /// Returns the timeline of an argument: a name, a path or times. Prints an error and throws an exit status if there
    /// is none.
    static func forArgument(_ text: String, _ console: Console) throws -> TimelineFile {
        do {
            return try ProfileCatalogue.timeline(text)
        } catch {
            throw error.exitCode(reportingTo: console)
        }
    }
}

extension ProfileCatalogue.LookupError {
    /// Prints the error and returns its exit status.
    func exitCode(reportingTo console: Console) -> ExitCode {
        console.errors(self)
        switch self {
        case .unknownProfile, .unknownTimeline, .isTimeline: return ExitStatus.usage
        case .unreadable, .invalid: return ExitStatus.invalidFile
        }
    }
}
