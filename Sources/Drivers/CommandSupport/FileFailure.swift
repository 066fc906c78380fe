internal import Foundation

/// The reasons of failed accesses to files, in a few words.
public enum FileFailure {
    /// Returns why a file or folder could not be read.
    public static func reason(_ error: any Error) -> String { reason(error, missing: "it does not exist") }

    /// Returns why a file could not be written.
    public static func reason(_ error: any Error, writing path: String) -> String {
        let folder = URL(filePath: path).deletingLastPathComponent().relativePath
        return reason(error, missing: "the folder \(folder) does not exist; create it first")
    }

    /// Returns why a file cannot be written, as far as its folder shows: to be checked before the work whose result it gets.
    public static func obstacle(toWriting path: String) -> String? {
        let folder = URL(filePath: path).deletingLastPathComponent()
        var isFolder: ObjCBool = false
        if !FileManager.default.fileExists(atPath: folder.path, isDirectory: &isFolder) {
            return reason(CocoaError(.fileNoSuchFile), writing: path)
        }
        if !isFolder.boolValue { return "\(folder.relativePath) is not a folder" }
        return FileManager.default.isWritableFile(atPath: folder.path) ? nil : "no permission"
    }

    private static func reason(_ error: any Error, missing: String) -> String {
        let error = error as NSError
        if error.domain == NSPOSIXErrorDomain {
            return Int32(exactly: error.code).map { number in
                number == ENOENT ? missing : String(cString: strerror(number)).lowercased()
            } ?? error.localizedDescription
        }
        if error.domain == NSCocoaErrorDomain {
            switch CocoaError.Code(rawValue: error.code) {
            case .fileNoSuchFile, .fileReadNoSuchFile: return missing
            case .fileReadNoPermission, .fileWriteNoPermission: return "no permission"
            case .fileWriteOutOfSpace: return "the disk is full"
            case .fileWriteVolumeReadOnly: return "the file system is read-only"
            default: break
            }
        }
        // The system's reason says more than Foundation's "the operation could not be completed".
        if let cause = error.userInfo[NSUnderlyingErrorKey] as? any Error,
            (cause as NSError).domain == NSPOSIXErrorDomain
        {
            return reason(cause, missing: missing)
        }
        return error.localizedDescription
    }
}
