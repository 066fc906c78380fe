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
