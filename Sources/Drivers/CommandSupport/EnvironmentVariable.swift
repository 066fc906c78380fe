/// Values of environment variables.
public enum EnvironmentVariable {
    /// An invalid value.
    public struct ValueError: Error, CustomStringConvertible {
        public let description: String
    }

    /// Returns the value of a boolean variable; `false` if it is not set.
    public static func boolean(_ name: String, in environment: [String: String]) throws(ValueError) -> Bool {
        switch environment[name]?.lowercased() {
        case nil, "", "0", "false", "no": false
        case "1", "true", "yes": true
        case let text?: throw ValueError(description: "\(name) '\(text.prefix(40))' must be 0 or 1")
        }
    }
}
