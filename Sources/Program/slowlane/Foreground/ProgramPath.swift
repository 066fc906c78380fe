internal import Foundation

/// The file of a program that is given by path or by name.
enum ProgramPath {
    /// Returns the path of a program, as the system searches it; `nil` if there is none.
    static func find(_ program: String) -> String? {
        if program.contains("/") { return program }
        let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":").map(String.init) ?? []
        return folders.map { "\($0)/\(program)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Returns whether a program runs as another user than the caller (setuid).
    static func changesUser(_ path: String) -> Bool {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path),
            let permissions = (attributes[.posixPermissions] as? NSNumber)?.intValue,
            let owner = (attributes[.ownerAccountID] as? NSNumber)?.uint32Value
        else { return false }
        return permissions & 0o4000 != 0 && owner != geteuid()
    }
}
