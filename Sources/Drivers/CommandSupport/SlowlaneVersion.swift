/// The version of the program.
public enum SlowlaneVersion {
    /// The version, as `--version` prints it.
    public static let current = "0.1.0"
}
