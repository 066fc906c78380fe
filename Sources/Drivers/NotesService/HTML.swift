internal import Foundation
internal import HTTPTypes

/// The HTML of web pages.
enum HTML {
    /// Returns the text before and after the content of a page.
    static func page(title: String, head: String, tail: String) -> (String, String) {
        (
            "<!doctype html><html lang=en><meta charset=utf-8><title>\(title)</title>\(head)",
            "\(tail)</html>"
        )
    }

    static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
            .replacingOccurrences(of: ">", with: "&gt;").replacingOccurrences(of: "\"", with: "&quot;")
            .replacingOccurrences(of: "'", with: "&#39;")
    }

    /// Sets the header fields of an HTML response; scripts and framing are forbidden.
    static func setHeaderFields(of response: inout NotesService.Response) {
        response[.contentType] = "text/html; charset=utf-8"
        response[.contentSecurityPolicy] = "default-src 'none'; frame-ancestors 'none'; form-action 'self'"
    }
}
