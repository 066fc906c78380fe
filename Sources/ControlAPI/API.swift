internal import ConfigFiles
public import HTTPTypes
internal import JSON
internal import LinkModel
public import Logging
public import NIOCore
internal import ProxyServer

/// Toxiproxy's API, and ours under `/slowlane/v1`: from a request to an answer.
public final class API: Sendable {
    let registry: ProxyRegistry
    let limits: ServerLimits
    /// What `/metrics` shows; `nil` is nothing.
    let metrics: MetricsChoice?
    let version: String

    /// The version that clients are told: that of the Toxiproxy whose API it is. Some read it as plain numbers.
    public static let toxiproxyVersion = "2.12.0"

    /// Which metrics there are under Toxiproxy's path.
    public struct MetricsChoice: Hashable, Sendable {
        /// Those of the proxies.
        public var proxies: Bool
        /// Those of the process.
        public var process: Bool

        /// Chooses.
        public init(proxies: Bool, process: Bool) {
            self.proxies = proxies
            self.process = process
        }
    }

    /// An API without proxies.
    ///
    /// - Parameters:
    ///   - seed: Where all chance of its proxies comes from.
    ///   - version: Slowlane's.
    ///   - group: Where proxies run.
    public convenience init(
        seed: UInt64, limits: ServerLimits = ServerLimits(), metrics: MetricsChoice? = nil, version: String,
        on group: any EventLoopGroup,
        logger: Logger = Logger(label: "slowlane.server") { _ in SwiftLogNoOpLogHandler() }
    ) {
        self.init(
            ProxyRegistry(seed: seed, limits: limits, on: group, logger: logger), limits: limits, metrics: metrics,
            version: version)
    }

    /// An API of a registry.
    init(_ registry: ProxyRegistry, limits: ServerLimits, metrics: MetricsChoice? = nil, version: String) {
        self.registry = registry
        self.limits = limits
        self.metrics = metrics
        self.version = version
    }

    /// Bytes of a call's path: two names of ``Fields/wordBytesMax``, each byte percent-encoded, and what stands around them.
    static let pathBytesMax = 2 * 3 * Fields.wordBytesMax + 256

    /// What is answered.
    public struct Answer: Sendable {
        /// The status.
        public var status: HTTPResponse.Status
        /// The body's type; `nil` without a body.
        public var type: String?
        /// The body.
        public var body = ""
        /// Where to look instead.
        var location: String?
        /// Whether a route of the API answered, and not the lack of one.
        var isRouted = true

        static func json(_ body: String, _ status: HTTPResponse.Status = .ok) -> Answer {
            Answer(status: status, type: "application/json", body: body)
        }

        static let done = Answer(status: .noContent)

        static func text(_ body: String, _ status: HTTPResponse.Status) -> Answer {
            Answer(status: status, type: "text/plain; charset=utf-8", body: body)
        }

        static func failure(_ failure: APIFailure) -> Answer {
            json(
                JSONText.object([("error", JSONText.string(failure.text)), ("status", "\(failure.status.code)")])
                    + "\n",
                failure.status)
        }
    }

    /// Makes the proxies of a configuration file: an array as in the body of `POST /populate`.
    ///
    /// - Returns: The names of those made, and what kept the others from being made.
    public func load(_ json: [UInt8]) async -> (names: [String], problem: String?) {
        do {
            let (done, failure) = await registry.populate(try Self.requests(json))
            return (done.map(\.name), failure?.text)
        } catch {
            return ([], error.text)
        }
    }

    /// Closes every proxy.
    public func close() async { await registry.closeAll() }

    /// Answers a request.
    public func respond(to request: HTTPRequest, body: [UInt8]) async -> Answer {
        let (path, query) = Self.split(request.path ?? "/")
        guard path.utf8.count <= Self.pathBytesMax else {
            return .failure(APIFailure(.uriTooLong, "the path is longer than \(Self.pathBytesMax) bytes"))
        }
        guard let decoded = Self.percentDecoded(path) else {
            return .failure(APIFailure(.badRequest, "the path is not percent-encoded UTF-8"))
        }
        if let cleaned = Self.cleaned(decoded) {
            return Answer(status: .movedPermanently, location: cleaned, isRouted: false)
        }
        let parts = decoded.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        do {
            if parts.first == "slowlane" {
                if let answer = try await respondAsSlowlane(
                    Array(parts.dropFirst()), request, query: query, body: body)
                {
                    return answer
                }
            } else if let answer = try await respondAsToxiproxy(parts, request, body) {
                return answer
            }
            var answer = Answer.text("404 page not found\n", .notFound)
            answer.isRouted = false
            return answer
        } catch {
            return .failure(error)
        }
    }

    static let noSuchMethod = Answer(status: .methodNotAllowed, isRouted: false)

    private static func split(_ target: String) -> (path: String, query: String) {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return (target, "") }
        return (String(target[..<mark]), String(target[target.utf8.index(after: mark)...]))
    }

    /// The path without percent signs; `nil` if they are not used as they should, or what they stand for is no text.
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

    /// The path without doubled slashes and dot segments; `nil` if it has none.
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
