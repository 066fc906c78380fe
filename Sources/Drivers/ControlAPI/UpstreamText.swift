internal import HTTPTypes
internal import Proxy

/// The upstream of a proxy in a request: `HOST:PORT`, or `:PORT` or `PORT` for this machine.
enum UpstreamText {
    /// Throws if the port is 0, which no server can have.
    static func check(_ text: String) throws(APIError) {
        guard Endpoint(text)?.port == 0 else { return }
        throw APIError(
            .badRequest, "the upstream '\(RequestWarnings.printable(text))' has port 0; use the port of the server")
    }

    /// Returns a warning about a text without a usable host or port; `nil` if there is none. Performs no lookup.
    static func warning(_ text: String) -> String? {
        if isPort(text) { return nil }
        let error =
            text.isEmpty || text.utf8.last == UInt8(ascii: ":")
            ? "address \(text): missing port in address" : ListenErrorText.ofSyntax(text)
        return error.map {
            "\(RequestWarnings.printable("upstream: \($0)", bytesMax: 160)); every connection to it fails"
        }
    }

    /// Returns the endpoint that a proxy dials. A text without a usable port becomes a host that no lookup finds.
    static func endpoint(_ text: String) async -> Endpoint {
        if isPort(text), let port = Int(text) { return Endpoint(host: "localhost", port: port) }
        let endpoint = await ListenAddress.upstream(text)
        // Otherwise a dial of '2001:db8::1' or 'redis' would use port 0, and '8.8' would mean 8.0.0.8.
        return endpoint.port == 0 ? Endpoint(host: "no port in '\(text)'", port: 0) : endpoint
    }

    private static func isPort(_ text: String) -> Bool {
        text.allSatisfy { $0.isASCII && $0.isNumber } && Int(text).map { (1...65535).contains($0) } ?? false
    }
}
