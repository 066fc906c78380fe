internal import Wire

/// The responses to requests in origin form, which are for the proxy itself and are never forwarded: the page about the
/// setup of clients and the PAC file.
///
/// A web page of another origin can make a browser send such requests, also by DNS rebinding. The page therefore has no
/// secrets, and the PAC file names only addresses of the listener, whatever `Host` is.
enum LocalPages {
    static func response(path: String, _ head: HTTPRequestHead, _ settings: NegotiationSettings) -> ProxyResponse {
        var response: ProxyResponse
        let path = String(decoding: path.utf8.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
        let isRead = head.method == "GET" || head.method == "HEAD"
        let address = address(for: head, settings)
        switch path {
        case "/" where isRead:
            response = ProxyResponse(
                status: 200,
                fields: [("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")],
                type: "text/html; charset=utf-8", text: page(address, settings))
        case "/proxy.pac" where isRead:
            response = ProxyResponse(status: 200, type: "application/x-ns-proxy-autoconfig", text: pac(address))
        case "/", "/proxy.pac":
            response = ProxyResponse(
                status: 405, fields: [("Allow", "GET, HEAD")], text: "this path has only GET and HEAD\n")
        default:
            response = ProxyResponse(
                status: 404,
                text: "this is a forward proxy, not a server: the request names a path instead of a URL\n"
                    + "set \(address.map { "http://\($0)" } ?? "this address") as the proxy of the client, for example: "
                    + "curl -x http://\(address?.description ?? "HOST:PORT") http://api.test/\n"
                    + "the page / describes the setup of phones and browsers\n")
        }
        response.omitsBody = head.method == "HEAD"
        return response
    }

    /// Returns the address that the client used, if it is one of the listener's, else the first one.
    private static func address(for head: HTTPRequestHead, _ settings: NegotiationSettings) -> Destination? {
        let used = head.hosts.first.flatMap { Destination(authority: $0, defaultPort: 80) }
        return settings.addresses.first { $0 == used } ?? settings.addresses.first
    }

    /// Returns the PAC file. It has no alternative `DIRECT`, with which clients would avoid the conditions.
    private static func pac(_ address: Destination?) -> String {
        let value = address.map { "PROXY \($0)" } ?? "DIRECT"
        return "function FindProxyForURL(url, host) { return \"\(value)\"; }\n"
    }

    private static func page(_ address: Destination?, _ settings: NegotiationSettings) -> String {
        let host = address?.host ?? "HOST"
        let port = address.map { String($0.port) } ?? "PORT"
        let authority = address?.description ?? "HOST:PORT"
        let pac = "http://\(authority)/proxy.pac"
        let rows = [
            ("iOS, iPadOS", "Settings, Wi-Fi, (i) of the network, Configure Proxy, Manual: server and port"),
            ("Android", "Settings, Network &amp; internet, Wi-Fi, the network, Edit, Proxy: Manual"),
            ("macOS", "System Settings, Network, the network, Details, Proxies: Web proxy and Secure web proxy"),
            ("Windows", "Settings, Network &amp; internet, Proxy, Manual proxy setup"),
            ("Firefox", "Settings, Network Settings, Manual: HTTP Proxy, also for HTTPS; or SOCKS v5 with proxied DNS"),
            (
                "Chromium",
                "<code>chromium --proxy-server=\(authority) --proxy-bypass-list='&lt;-loopback&gt;'</code>"
            ),
            ("curl", "<code>curl -x http://\(authority) http://api.test/</code>"),
            ("Automatic (PAC)", "<code>\(pac)</code>"),
        ]
        let table = rows.map { "<tr><th>\($0.0)</th><td>\($0.1)</td></tr>" }.joined(separator: "\n")
        let addresses = settings.addresses.map { "<li><code>\($0)</code></li>" }.joined(separator: "\n")
        let password = settings.credentials == nil ? "" : "<p>The proxy asks for a user and a password.</p>\n"
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width">
            <title>Slowlane: forward proxy</title>
            <style>
            body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
            th { text-align: left; vertical-align: top; padding-right: 1rem; white-space: nowrap }
            code { overflow-wrap: anywhere }
            </style>
            </head>
            <body>
            <h1>Forward proxy</h1>
            <p>This port is a proxy that simulates a network. It speaks HTTP (CONNECT and absolute URLs) and SOCKS 4a and 5.
            Set server <code>\(host)</code>, port <code>\(port)</code> as the proxy of a device or a browser; its connections
            then share the simulated link.</p>
            \(password)<table>
            \(table)
            </table>
            <h2>Addresses of this proxy</h2>
            <ul>
            \(addresses)
            </ul>
            <p>Several clients do not use a proxy for <code>localhost</code>. UDP, and with it HTTP/3, does not pass.</p>
            </body>
            </html>

            """
    }
}
