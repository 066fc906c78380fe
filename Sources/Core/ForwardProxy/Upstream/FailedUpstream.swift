public import NIOCore
internal import Wire

/// The stand-in for an upstream whose TLS handshake has failed: it responds to the first request of a connection with
/// the reason.
///
/// A state machine without deadlines: the bytes of the client are its input.
public struct FailedUpstream: Sendable {
    /// What happens to the connection.
    public enum Outcome: Sendable {
        /// More bytes of the client are needed.
        case undecided
        /// These bytes are the response, and the end of the stream follows them.
        case respond(ByteBuffer)
        /// The bytes are not an HTTP request: the connection is reset.
        case reset
    }

    private let failure: TLSFailure
    private let upstream: String
    private var parser = HTTPParser(.requests, checksIncompleteHeads: true)

    /// - Parameter upstream: The authority of the upstream.
    public init(_ failure: TLSFailure, upstream: String) {
        self.failure = failure
        self.upstream = upstream
    }

    /// Reports bytes of the client.
    public mutating func received(_ bytes: ByteBuffer) -> Outcome {
        parser.received(bytes)
        do {
            guard case .requestHead(let head, _)? = try parser.takePart() else { return .undecided }
            return .respond(failure.response(for: upstream, omitsBody: head.method == "HEAD").bytes)
        } catch {
            return .reset
        }
    }
}
