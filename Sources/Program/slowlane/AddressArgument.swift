internal import ArgumentParser
internal import Foundation

/// The check of an argument HOST:PORT for URLs, which users of HTTP clients give.
enum AddressArgument {
    private static let portsByScheme = ["http": 80, "ws": 80, "https": 443, "wss": 443]

    /// Throws if an argument is a URL; the error names the address in it.
    static func check(_ text: String, option: String) throws {
        guard text.contains("://") else { return }
        let parts = URLComponents(string: text)
        var address = "HOST:PORT"
        if let parts, let host = parts.host, !host.isEmpty,
            let port = parts.port ?? parts.scheme.flatMap({ portsByScheme[$0.lowercased()] })
        {
            address = "\(host):\(port)"
        }
        let message = "\(option) '\(text.prefix(80))' is a URL; give the address only: \(option) \(address)"
        guard option == "--upstream", let parts, let note = note(parts, address: address) else {
            throw ValidationError(message)
        }
        throw ValidationError("\(message)\n\(note)")
    }

    /// Returns what a client does to reach a URL through a proxy; `nil` if the address is all.
    private static func note(_ url: URLComponents, address: String) -> String? {
        guard let scheme = url.scheme?.lowercased(), let host = url.host, !host.isEmpty else { return nil }
        let rest = String((url.percentEncodedPath + (url.percentEncodedQuery.map { "?\($0)" } ?? "")).prefix(80))
        switch scheme {
        case "https", "wss": return "For TLS between the proxy and the server: --upstream https://\(address)"
        case "http", "ws":
            guard rest != "", rest != "/" else { return nil }
            return "The path belongs to the client's URL: \(scheme)://HOST:PORT\(rest), with HOST:PORT of the proxy"
        default: return nil
        }
    }
}
