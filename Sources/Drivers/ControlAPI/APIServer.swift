internal import HTTPSockets
internal import HTTPTypes
public import Logging
internal import NIOPosix
internal import Proxy
internal import Wire

/// An HTTP server of an ``API``.
public final class APIServer: Sendable {
    private let server: HTTPServer

    /// The listening port.
    public var port: Int { server.port }

    private init(_ server: HTTPServer) { self.server = server }

    /// The API's own event loop, so that proxy traffic does not delay responses.
    private static let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    /// The time in which a client must accept a part of a response, plus the time of its bytes at
    /// ``responseBytesPerSecondMin``; a slower reader of events is disconnected.
    private static let responseStallSecondsMax = 30.0
    private static let responseBytesPerSecondMin = 16 << 10

    /// The reason why the server cannot start.
    public struct StartError: Error, CustomStringConvertible {
        public let description: String
    }

    /// Starts a server, which runs until ``stop()``.
    ///
    /// - Parameters:
    ///   - hostOption: The command-line option that sets the host, for error messages.
    ///   - portOption: The command-line option that sets the port.
    public static func start(
        _ api: API, host: String, port: Int, hostOption: String = "--host", portOption: String = "--port",
        requestGuard: RequestGuard,
        logger: Logger = Logger(label: "slowlane.server") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> APIServer {
        var limits = HTTPServer.Limits()
        limits.bodyBytesMax = api.limits.bodyBytesMax
        limits.bodiesBytesMax = api.limits.bodyBytesMax * api.limits.apiConnectionsMax
        limits.headerBytesMax = api.limits.headerBytesMax
        limits.connectionsMax = api.limits.apiConnectionsMax
        limits.bodyBytesPerSecondMin = api.limits.bodyBytesPerSecondMin
        limits.bodyWindowSeconds = api.limits.bodyWindowSeconds
        limits.responseStallSecondsMax = responseStallSecondsMax
        limits.responseBytesPerSecondMin = responseBytesPerSecondMin
        do {
            let server = try await HTTPServer.start(
                host: host, port: port, addressOption: hostOption, portOption: portOption, limits: limits, on: loop
            ) {
                request, exchange in
                let response = await respond(to: request, exchange, api, requestGuard)
                logger.debug("\(request.method) \(request.path?.prefix(200) ?? "") \(response.status.code)")
                return httpResponse(response)
            }
            return APIServer(server)
        } catch {
            throw StartError(description: "\(error)")
        }
    }

    /// Closes the port and every connection.
    public func stop() async { await server.stop() }

    private static func respond(
        to request: HTTPRequest, _ exchange: HTTPServer.Exchange, _ api: API, _ requestGuard: RequestGuard
    ) async -> API.Response {
        let needsToken = !Dashboard.isPage(request)
        if let rejection = requestGuard.rejection(of: request, needsToken: needsToken) { return .error(rejection) }
        if requestGuard.token != nil, needsToken { exchange.recordAuthentication() }
        do {
            return await api.respond(to: request, body: try await exchange.readBody())
        } catch {
            switch error {
            case .tooLarge, .budgetExceeded:
                return .error(
                    APIError(.contentTooLarge, "the body is larger than \(api.limits.bodyBytesMax) bytes (--max-body)"))
            case .tooSlow:
                return .error(
                    APIError(
                        .requestTimeout,
                        "the body arrived at less than \(api.limits.bodyBytesPerSecondMin) bytes/s, averaged over "
                            + "\(api.limits.bodyWindowSeconds) s"))
            case .malformed(let reason): return .error(.badBody(reason))
            }
        }
    }

    private static func httpResponse(_ response: API.Response) -> HTTPServer.Response {
        var headers = response.headers
        if let type = response.type { headers[.contentType] = type }
        if let location = response.location { headers[.location] = location }
        if !response.allowedMethods.isEmpty {
            headers[.allow] = response.allowedMethods.map(\.rawValue).joined(separator: ", ")
        }
        if response.isRouted { headers[requestID] = newRequestID() }
        if response.status == .unauthorized { headers[.wwwAuthenticate] = "Bearer" }
        if !response.warnings.isEmpty {
            headers[RequestWarnings.headerName] = RequestWarnings.header(response.warnings)
        }
        headers[.xContentTypeOptions] = "nosniff"
        let head = HTTPResponse(status: response.status, headerFields: headers)
        if let stream = response.stream { return HTTPServer.Response(head, .stream(stream)) }
        return HTTPServer.Response(head, .text(response.body))
    }

    private static let requestID = HTTPField.Name("X-Toxiproxy-Request-Id")!

    /// Returns twenty random characters.
    private static func newRequestID() -> String {
        let letters = Array("0123456789abcdefghijklmnopqrstuv")
        return String((0..<20).map { _ in letters[Int.random(in: 0..<letters.count)] })
    }
}
