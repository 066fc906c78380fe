internal import HTTPServing
internal import HTTPTypes
public import Logging
internal import NIOPosix
internal import ProxyServer

/// An ``API`` on a socket.
public final class APIServer: Sendable {
    private let host: HTTPServer

    /// The port it listens on.
    public var port: Int { host.port }

    private init(_ host: HTTPServer) { self.host = host }

    /// Answers run on a loop of their own, so that proxies never hold them up.
    private static let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    /// Why a server cannot start.
    public struct StartError: Error, CustomStringConvertible {
        /// What happened.
        public let description: String
    }

    /// Listens and answers until ``stop()``.
    public static func start(
        _ api: API, host: String, port: Int, gatekeeper: Gatekeeper,
        logger: Logger = Logger(label: "slowlane.server") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> APIServer {
        var limits = HTTPServer.Limits()
        limits.bodyBytesMax = api.limits.bodyBytesMax
        limits.bodiesBytesMax = api.limits.bodyBytesMax * api.limits.callersMax
        limits.headerBytesMax = api.limits.headerBytesMax
        limits.connectionsMax = api.limits.callersMax
        limits.bodyBytesPerSecondMin = api.limits.bodyBytesPerSecondMin
        limits.bodyWindowSeconds = api.limits.bodyWindowSeconds
        do {
            let host = try await HTTPServer.start(host: host, port: port, limits: limits, on: loop) {
                request, exchange in
                let answer = await answer(request, exchange, api, gatekeeper)
                logger.debug("\(request.method) \(request.path?.prefix(200) ?? "") \(answer.status.code)")
                return response(answer)
            }
            return APIServer(host)
        } catch {
            throw StartError(description: "cannot bind \(error.address): \(error.cause)")
        }
    }

    /// Closes everything.
    public func stop() async { await host.stop() }

    private static func answer(
        _ request: HTTPRequest, _ exchange: HTTPServer.Exchange, _ api: API, _ gatekeeper: Gatekeeper
    ) async -> API.Answer {
        if let refusal = gatekeeper.refusal(of: request) { return .failure(refusal) }
        if gatekeeper.token != nil { exchange.recordAuthentication() }
        do {
            return await api.respond(to: request, body: try await exchange.readBody())
        } catch {
            switch error {
            case .tooLarge, .budgetExceeded:
                return .failure(
                    APIFailure(
                        .contentTooLarge, "the body is larger than \(api.limits.bodyBytesMax) bytes (--max-body)"))
            case .tooSlow:
                return .failure(
                    APIFailure(
                        .requestTimeout,
                        "the body arrived at less than \(api.limits.bodyBytesPerSecondMin) bytes per second, taken over "
                            + "\(api.limits.bodyWindowSeconds) s"))
            case .malformed(let reason): return .failure(.badBody(reason))
            }
        }
    }

    private static func response(_ answer: API.Answer) -> HTTPServer.Response {
        var headers = HTTPFields()
        if let type = answer.type { headers[.contentType] = type }
        if let location = answer.location { headers[.location] = location }
        if answer.isRouted { headers[requestID] = newRequestID() }
        if answer.status == .unauthorized { headers[.wwwAuthenticate] = "Bearer" }
        headers[.xContentTypeOptions] = "nosniff"
        return HTTPServer.Response(HTTPResponse(status: answer.status, headerFields: headers), .text(answer.body))
    }

    private static let requestID = HTTPField.Name("X-Toxiproxy-Request-Id")!

    /// Twenty characters that are different each time.
    private static func newRequestID() -> String {
        let letters = Array("0123456789abcdefghijklmnopqrstuv")
        return String((0..<20).map { _ in letters[Int.random(in: 0..<letters.count)] })
    }
}
