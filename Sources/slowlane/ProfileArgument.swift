internal import ArgumentParser
internal import Files
internal import LinkModel

extension Profile {
    /// The profile of a name or a path for a command's argument: tells what is wrong and ends with the right status.
    static func forArgument(_ text: String, _ console: Console, mustBeLive: Bool = true) throws -> Profile {
        do {
            let profile = try ProfileCatalogue.profile(text)
            if mustBeLive, let reason = profile.conditions.unsupported {
                console.print("error: profile '\(profile.id)' has \(reason)", to: .progress)
                throw ExitStatus.usage
            }
            return profile
        } catch let failure as ProfileCatalogue.Failure {
            console.print("error: \(failure)", to: .progress)
            if case .unknown = failure { throw ExitStatus.usage }
            throw ExitStatus.invalidFile
        }
    }
}
