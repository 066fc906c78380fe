/// The reason why a request body cannot be read.
public enum HTTPServerBodyError: Error, Hashable, Sendable {
    /// The body exceeds its limit.
    case tooLarge
    /// The body arrived more slowly than ``HTTPServerLimits/bodyBytesPerSecondMin``.
    case tooSlow
    /// All bodies of the server together exceed their limit.
    case budgetExceeded
    /// The body is malformed, or the connection was closed before its end.
    case malformed(String)
}
