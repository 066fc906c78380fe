public import HTTPTypes
internal import Synchronization

/// Another service of the same server, under a path of its own. The notes service authenticates its users.
public struct MountedService: Sendable {
    /// Returns whether a path is one of the service.
    let serves: @Sendable (_ path: String) -> Bool
    /// Returns the response to a request of a user; `nil` for an unauthenticated one.
    let respond: @Sendable (HTTPRequest, _ user: String?, _ body: [UInt8]) -> (head: HTTPResponse, body: [UInt8])

    /// Creates a service.
    ///
    /// - Parameters:
    ///   - serves: Returns whether a path is one of the service.
    ///   - respond: Returns the response to a request of a user; `nil` for an unauthenticated one.
    public init(
        serves: @escaping @Sendable (_ path: String) -> Bool,
        respond:
            @escaping @Sendable (HTTPRequest, _ user: String?, _ body: [UInt8]) -> (head: HTTPResponse, body: [UInt8])
    ) {
        self.serves = serves
        self.respond = respond
    }
}

extension NotesService {
    /// Returns the response of the mounted service to a request; `nil` if the path is not one of it.
    func mountedResponse(to http: HTTPRequest, body: [UInt8]) -> Response? {
        guard let mounted, mounted.serves(http.path ?? "") else { return nil }
        var user: String?
        switch try? authentication(of: http) {
        case .user(let name, _)?: user = name
        case .session?, .anonymous?, .rejected?, nil: break
        }
        let (head, content) = mounted.respond(http, user, body)
        var response = Response(head.status, Self.body(content))
        response.head = head
        response.isAuthenticated = user != nil
        return response
    }

    /// The longest part of a binary body.
    private static let partBytesMax = 64 << 10

    private static func body(_ content: [UInt8]) -> Body {
        if let text = String(validating: content, as: UTF8.self) { return .text(text) }
        let rest = Mutex(content[...])
        return .bytes(
            Bytes(length: content.count) {
                rest.withLock { rest in
                    let part = rest.prefix(partBytesMax)
                    rest = rest.dropFirst(part.count)
                    return part.isEmpty ? nil : Array(part)
                }
            })
    }
}
