internal import ConfigFiles
public import Determinism
public import HTTPTypes
public import LinkModel
public import Logging
public import NIOCore
public import Proxy
internal import Synchronization
internal import Wire

/// Toxiproxy's API, and Slowlane's API under `/slowlane/v1`, as a function from requests to responses.
public final class API: Sendable {
    let registry: ProxyRegistry
    let limits: ServerLimits
    /// The metrics under Toxiproxy's path `/metrics`; `nil` for a 404.
    let metrics: MetricsSelection?
    let version: String
    let dashboard: Dashboard
    let work: WorkPool
    private let pages: AdditionalPages?
    private let logger: Logger

    /// The version of Toxiproxy whose API is implemented. Some clients parse it, and accept numbers and dots only.
    public static let toxiproxyVersion = "2.12.0"

    /// A selection of metrics.
    public struct MetricsSelection: Hashable, Sendable {
        /// Whether the metrics of proxies are included.
        public var proxies: Bool
        /// Whether the metrics of the process are included.
        public var process: Bool

        /// Creates a selection.
        public init(proxies: Bool, process: Bool) {
            self.proxies = proxies
            self.process = process
        }
    }

    /// Creates an API without proxies.
    ///
    /// - Parameters:
    ///   - seed: The random seed from which the seeds of the proxies are derived.
    ///   - version: Slowlane's version.
    ///   - dashboard: The settings of the dashboard.
    ///   - pages: Pages beside the dashboard.
    ///   - timelineStart: The start of timelines that have none of their own; `nil` for the time at which they are set.
    ///   - authority: Returns the authority of intercepted connections; `nil` for one in memory for each proxy.
    ///   - group: The event loops of the proxies.
    public convenience init(
        seed: UInt64, limits: ServerLimits = ServerLimits(), metrics: MetricsSelection? = nil, version: String,
        dashboard: Dashboard = Dashboard(), pages: AdditionalPages? = nil, timelineStart: TimelineStart? = nil,
        authority: @escaping @Sendable () throws(CertificateAuthorityError) -> CertificateAuthority? = {
            () throws(CertificateAuthorityError) in nil
        }, on group: any EventLoopGroup,
        logger: Logger = Logger(label: "slowlane.server") { _ in SwiftLogNoOpLogHandler() }
    ) {
        var feedLimits = EventFeed.Limits()
        feedLimits.readersMax = limits.eventReadersMax
        let work = WorkPool()
        let feed = EventFeed(version: version, dashboard: dashboard.mode.rawValue, limits: feedLimits, work: work)
        self.init(
            ProxyRegistry(
                seed: seed, limits: limits, timelineStart: timelineStart, on: group, logger: logger, feed: feed,
                authority: authority),
            limits: limits,
            metrics: metrics, version: version, dashboard: dashboard, pages: pages, work: work, logger: logger)
    }

    /// Creates an API of a registry.
    init(
        _ registry: ProxyRegistry, limits: ServerLimits, metrics: MetricsSelection? = nil, version: String,
        dashboard: Dashboard = Dashboard(), pages: AdditionalPages? = nil, work: WorkPool = WorkPool(),
        logger: Logger = Logger(label: "slowlane.server") { _ in SwiftLogNoOpLogHandler() }
    ) {
        self.work = work
        self.registry = registry
        self.limits = limits
        self.metrics = metrics
        self.version = version
        self.dashboard = dashboard
        self.pages = pages
        self.logger = logger
    }

    /// The longest path in bytes: two names of ``JSONFields/wordBytesMax`` percent-encoded bytes, and 256 bytes for the
    /// rest.
    static let pathBytesMax = 2 * 3 * JSONFields.wordBytesMax + 256

    /// An HTTP response.
    public struct Response: Sendable {
        /// The status.
        public var status: HTTPResponse.Status
        /// The media type of the body; `nil` without a body.
        public var type: String?
        /// The body.
        public var body = ""
        /// The body of a stream: returns the next part, and `nil` at the end.
        var stream: (@Sendable () async -> String?)?
        /// Further header fields.
        var headers: HTTPFields = [:]
        /// Warnings about parts of the request that have no effect.
        public var warnings: [String] = []
        /// The target of a redirect.
        var location: String?
        /// The methods of the path, in the response to another method.
        var allowedMethods: [HTTPRequest.Method] = []
        /// Whether the request matched a route. Only these responses have a request ID.
        var isRouted = true

        static func json(
            _ body: String, _ status: HTTPResponse.Status = .ok, warnings: [String] = []
        ) -> Response {
            Response(status: status, type: "application/json", body: body, warnings: warnings)
        }

        static let noContent = Response(status: .noContent)
        static let methodNotAllowed = Response(status: .methodNotAllowed, isRouted: false)

        static func methodNotAllowed(except allowed: [HTTPRequest.Method]) -> Response {
            Response(status: .methodNotAllowed, allowedMethods: allowed, isRouted: false)
        }

        static func text(_ body: String, _ status: HTTPResponse.Status) -> Response {
            Response(status: status, type: "text/plain; charset=utf-8", body: body)
        }

        static func error(_ error: APIError) -> Response {
            json(APIError.shape.json(error) + "\n", error.status)
        }
    }

    /// Creates the proxies of a configuration, which has the format of the body of `POST /populate`.
    ///
    /// - Parameter again: Whether the proxies of the last configuration become those of this one. A proxy whose addresses
    ///   are the same keeps its connections, and proxies that requests have created remain.
    /// - Returns: The proxies, up to the first one that failed, and its error. A configuration that cannot be read changes
    ///   nothing.
    public func load(_ json: [UInt8], again: Bool = false) async -> (proxies: [LoadedProxy], problem: String?) {
        do {
            let configuration = try Self.configuration(json)
            for warning in configuration.warnings { logger.warning("configuration: \(warning)") }
            let requests = try configuration.requests.get()
            let (proxies, error) = await again ? registry.reload(requests) : registry.load(requests)
            return (proxies.map(LoadedProxy.init), error?.text)
        } catch {
            return ([], error.text)
        }
    }

    /// A proxy that a configuration has created.
    public struct LoadedProxy: Sendable {
        /// The name.
        public let name: String
        /// The address on which it listens.
        public let listen: String
        /// The server's address.
        public let upstream: String
        /// Whether it has been started.
        public let isEnabled: Bool

        init(_ proxy: ManagedProxy) {
            (name, listen, upstream, isEnabled) = (proxy.name, proxy.listen, proxy.upstream, proxy.isEnabled)
        }
    }

    /// Closes every proxy.
    ///
    /// - Parameter grace: The time for transfers that are not complete; connections without traffic are closed at once.
    public func close(grace: Nanoseconds = .zero) async { await registry.closeAll(grace: grace) }

    /// Returns the response to a request, after the request has taken effect.
    public func respond(to request: HTTPRequest, body: [UInt8]) async -> Response {
        var response: Response
        do {
            response = try await route(request, body)
        } catch {
            response = .error(error)
        }
        if let proxies = registry.conditionsHeader.withLock({ $0 }) { response.headers[Self.conditions] = proxies }
        for warning in response.warnings {
            logger.warning("\(request.method) \(request.path?.prefix(200) ?? ""): \(warning)")
        }
        return response
    }

    /// The header of responses that names the proxies to which conditions apply.
    private static let conditions = HTTPField.Name("Slowlane-Conditions")!

    /// Returns the values in a request body; a large one is read on a thread of ``work``.
    func decoded<Value: Sendable>(
        _ body: [UInt8], _ read: @escaping @Sendable (JSONFields) throws(APIError) -> Value
    ) async throws(APIError) -> Value {
        try await work.run(bytes: body.count) { () throws(APIError) in try read(try JSONFields(body: body)) }
    }

    private func route(_ request: HTTPRequest, _ body: [UInt8]) async throws(APIError) -> Response {
        let (path, query) = Self.split(request.path ?? "/")
        guard path.utf8.count <= Self.pathBytesMax else {
            throw APIError(.uriTooLong, "the path is longer than \(Self.pathBytesMax) bytes")
        }
        guard let decoded = Self.percentDecoded(path) else {
            throw APIError(.badRequest, "the path is not percent-encoded UTF-8")
        }
        if let cleaned = Self.cleaned(decoded) {
            return Response(status: .movedPermanently, location: cleaned, isRouted: false)
        }
        let parts = decoded.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        if let page = await pages?.response(to: request, parts, query: query, body: body) { return page }
        if let page = dashboard.response(to: request, parts) { return page }
        if let rejection = dashboard.rejection(of: request) { throw rejection }
        let response =
            try await parts.first == "slowlane"
            ? slowlaneResponse(Array(parts.dropFirst()), request, query: query, body: body)
            : toxiproxyResponse(parts, request, body)
        if let response { return response }
        var notFound = Response.text("404 page not found\n", .notFound)
        notFound.isRouted = false
        return notFound
    }

    private static func split(_ target: String) -> (path: String, query: String) {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return (target, "") }
        return (String(target[..<mark]), String(target[target.utf8.index(after: mark)...]))
    }

    /// Returns a path with its percent-encoding removed; `nil` if the encoding is malformed or the result is not UTF-8.
    static func percentDecoded(_ text: String) -> String? {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return text }
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst(), let low = rest.popFirst(),
                let value = UInt8(String(decoding: [high, low], as: UTF8.self), radix: 16), high != UInt8(ascii: "+")
            else { return nil }
            bytes.append(value)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Returns a path with doubled slashes and dot segments removed; `nil` if it has none.
    private static func cleaned(_ path: String) -> String? {
        guard path.contains("//") || path.contains("/.") else { return path.hasPrefix("/") ? nil : "/" }
        var parts: [Substring] = []
        for part in path.split(separator: "/") {
            if part == ".." { _ = parts.popLast() } else if part != "." { parts.append(part) }
        }
        let clean = "/" + parts.joined(separator: "/") + (path.hasSuffix("/") && !parts.isEmpty ? "/" : "")
        return clean == path ? nil : clean
    }
}
