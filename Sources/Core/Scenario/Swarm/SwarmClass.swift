/// A class of faults and disturbances that a seed of an exploration has or has not (swarm testing: Groce et al., ISSTA
/// 2012). A run without a class reaches states that the class would hide.
public enum SwarmClass: String, CaseIterable, Hashable, Sendable {
    /// Links on which nothing reaches the server.
    case outages
    /// Links of which one direction is dead.
    case oneWay = "one-way"
    /// Links that alternate.
    case flapping
    /// Links that are cut one after the other and restored in another order.
    case swizzle
    /// A device whose link fails for ever.
    case departure
    /// Responses that are lost after the server has executed the request.
    case lostResponse = "lost-response"
    /// Connections that are reset or closed at any point.
    case reset
    /// Requests and responses that are delayed.
    case delayed
    /// Bodies of which only a part arrives.
    case halfBody = "half-body"
    /// Responses that arrive byte by byte.
    case throttle
    /// Responses of another server: another media type, no marker.
    case wrongType = "wrong-type"
    /// Responses with 503 and Retry-After.
    case overload
    /// Responses with 500.
    case serverError = "server-error"
    /// Responses that reject changes for good: of any note, or several changes of one note.
    case rejection
    /// Responses with 401, also to requests for another access token.
    case unauthorized
    /// Clients that are killed between a commit and its consequences.
    case killAtCommit = "kill-at-commit"
    /// Clients that are killed at any time.
    case kills
    /// Steps of the wall clock.
    case clockSteps = "clock-steps"
    /// Devices that start without notes.
    case firstPull = "first-pull"
    /// Disks that are full or slow for a time.
    case disks
    /// Writers that reuse an operation id for another request, and the identifier of a deleted note.
    case reusedIDs = "reused-ids"
    /// Access tokens that expire.
    case tokenExpiry = "token-expiry"
    /// Short delays and timeouts in place of the client's defaults.
    case shortDelays = "short-delays"

    /// The part of a scenario to which the class belongs.
    public var part: Scenario.Exploration.Part {
        switch self {
        case .outages, .oneWay, .flapping, .swizzle, .departure: .network
        case .lostResponse, .reset, .delayed, .halfBody, .throttle, .wrongType, .overload, .serverError, .rejection,
            .unauthorized, .killAtCommit:
            .faults
        case .kills, .clockSteps, .firstPull, .disks, .reusedIDs: .workload
        case .tokenExpiry, .shortDelays: .config
        }
    }

    /// Whether the class kills clients.
    var kills: Bool { self == .kills || self == .killAtCommit }
}
