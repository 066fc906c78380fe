/// Whether this build contains TLS: the package trait `TLS`, which is enabled by default.
public enum TLSSupport {
    #if TLS
    public static let isBuilt = true
    #else
    public static let isBuilt = false
    #endif
    /// The error of commands and requests that need TLS in a build without it.
    public static let missing =
        "this program is built without TLS (package trait 'TLS'): use a release, or the program of 'swift build'"
}
