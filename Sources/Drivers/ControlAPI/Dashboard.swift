internal import ConfigFiles
internal import Foundation
internal import HTTPTypes

/// The settings of the dashboard, and its files.
public struct Dashboard: Hashable, Sendable {
    /// The mode of the dashboard.
    public enum Mode: String, CaseIterable, Hashable, Sendable {
        /// The page is served, and may change everything.
        case on
        /// The page is served; requests from browsers change nothing.
        case view
        /// The page is not served.
        case off
    }

    /// The mode.
    public var mode: Mode
    /// The folder from which the files are read for each request; `nil` for those that the program contains.
    public var folder: String?

    /// Creates settings.
    public init(mode: Mode = .on, folder: String? = nil) {
        self.mode = mode
        self.folder = folder
    }

    /// Returns whether a request is for a file of the page; such a request needs no token.
    static func isPage(_ request: HTTPRequest) -> Bool {
        guard request.method == .get || request.method == .head else { return false }
        let path = (request.path ?? "/").prefix { $0 != "?" }
        return path == "/" || path.hasPrefix("/dashboard/")
    }

    /// Returns the response to a request for the page; `nil` for other requests.
    ///
    /// - Parameter parts: The segments of the path.
    func response(to request: HTTPRequest, _ parts: [String]) -> API.Response? {
        guard mode != .off, request.method == .get || request.method == .head else { return nil }
        let name: String
        if parts == [""] {
            // Toxiproxy has no such path.
            guard request.headerFields[.accept]?.contains("text/html") == true else { return nil }
            name = "index.html"
        } else if parts.count == 2, parts[0] == "dashboard" {
            name = parts[1]
        } else {
            return nil
        }
        guard let type = Self.type(of: name), let text = text(of: name) else { return nil }
        let tag = "\"\(String(Self.hash(text), radix: 16))\""
        var response = API.Response(status: .ok, type: type, body: text)
        if request.headerFields[.ifNoneMatch]?.contains(tag) == true {
            response = API.Response(status: .notModified)
        }
        response.isRouted = false
        response.headers[.eTag] = tag
        response.headers[.cacheControl] = "no-cache"
        Self.secure(&response)
        return response
    }

    /// Adds the header fields that restrict what a page may load, and who may embed it.
    static func secure(_ response: inout API.Response) {
        response.headers[.contentSecurityPolicy] = contentSecurityPolicy
        response.headers[referrerPolicy] = "no-referrer"
    }

    /// Returns the error of a request that changes something, if browsers may not.
    func rejection(of request: HTTPRequest) -> APIError? {
        guard mode == .view, ![.get, .head, .options].contains(request.method) else { return nil }
        let fields = request.headerFields
        let isBrowser =
            fields[Self.marker] != nil || fields[.origin] != nil || fields[Self.fetchSite] != nil
            || fields[.userAgent]?.hasPrefix("Mozilla/") == true
        guard isBrowser else { return nil }
        return APIError(.forbidden, "the dashboard is read-only (--dashboard=view)")
    }

    /// The header of the page's own requests.
    static let marker = HTTPField.Name("X-Slowlane-Dashboard")!
    /// The header in which a browser says whose page has sent a request.
    static let fetchSite = HTTPField.Name("Sec-Fetch-Site")!
    private static let referrerPolicy = HTTPField.Name("Referrer-Policy")!

    private static let contentSecurityPolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    private static let types = [
        "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
        "svg": "image/svg+xml", "json": "application/json", "txt": "text/plain; charset=utf-8",
    ]

    /// Returns the media type of a file; `nil` if the page has no such files.
    private static func type(of name: String) -> String? {
        let isName = name.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
        }
        guard isName, !name.hasPrefix("."), let dot = name.lastIndex(of: ".") else { return nil }
        return types[String(name[name.index(after: dot)...])]
    }

    private func text(of name: String) -> String? {
        guard let folder else { return EmbeddedFile.page("dashboard/\(name)") }
        return FileManager.default.contents(atPath: "\(folder)/\(name)").map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the FNV-1a hash of a text.
    private static func hash(_ text: String) -> UInt64 {
        text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}
