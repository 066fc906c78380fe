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
        throw ValidationError("\(option) '\(text.prefix(80))' is a URL; give the address only: \(option) \(address)")
    }
}
