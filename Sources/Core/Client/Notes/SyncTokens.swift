public import Determinism
internal import Wire

/// An access token, which expires, and the refresh token that renews it (RFC 6749, 1.5).
public struct SyncTokens: Hashable, Sendable, CustomStringConvertible {
    /// The access token, sent with each request (RFC 6750).
    public var access: String
    /// The refresh token, sent only to get another access token.
    public var refresh: String
    /// The time from the response to the expiry of the access token (`expires_in`); `nil` if it is not known.
    public var lifetime: Nanoseconds?

    /// The greatest lifetime that is read, in seconds: 365 days.
    private static let secondsMax = 31_536_000.0

    /// Creates a pair of tokens.
    public init(access: String, refresh: String, lifetime: Nanoseconds? = nil) {
        self.access = access
        self.refresh = refresh
        self.lifetime = lifetime
    }

    /// A text without the secrets.
    public var description: String { "an access token and a refresh token" }

    /// Reads a response to a request for an access token (RFC 6749, 5.1); `nil` if it is none. A response without a
    /// refresh token keeps the one that was sent.
    init?(json: [UInt8], sent refresh: String) {
        guard let object = JSONText.parse(json)?.object, let access = object["access_token"]?.text, !access.isEmpty,
            access.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        let seconds = object["expires_in"]?.number.map { Int64(max(0, min($0, Self.secondsMax))) }
        self.init(
            access: access, refresh: object["refresh_token"]?.text ?? refresh, lifetime: seconds.map { .seconds($0) })
    }
}

extension SyncRequestContent {
    /// Creates a request for another access token (RFC 6749, 6) with a JSON body.
    init(refresh token: String, path: String) {
        self.init(
            method: "POST", target: path, headers: [(name: "Content-Type", value: "application/json")],
            body: Array(
                JSONText.object([
                    ("grant_type", JSONText.string("refresh_token")), ("refresh_token", JSONText.string(token)),
                ]).utf8))
    }
}
