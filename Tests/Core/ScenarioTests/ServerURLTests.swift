import Scenario
import Testing

/// URLs of servers.
@Suite struct ServerURLTests {
    @Test(arguments: [
        ("http://localhost", "localhost", 80, ""), ("http://localhost:8000", "localhost", 8000, ""),
        ("HTTP://10.0.0.1:1/", "10.0.0.1", 1, ""), ("http://a/b/c/", "a", 80, "/b/c"),
        ("http://[::1]:8000/x", "::1", 8000, "/x"), ("http://[::1]", "::1", 80, ""),
        ("https://localhost", "localhost", 443, ""), ("HTTPS://a.test:8443/x", "a.test", 8443, "/x"),
    ]) func aURLHasHostPortAndPath(_ text: String, _ host: String, _ port: Int, _ path: String) throws {
        let url = try #require(ServerURL(text))
        #expect(url.host == host)
        #expect(url.port == port)
        #expect(url.path == path)
        #expect(url.isSecure == text.lowercased().hasPrefix("https"))
        #expect(url.isLoopback == ["localhost", "::1"].contains(host))
    }

    @Test(arguments: [
        "", "localhost", "ftp://localhost", "https://", "http://", "http:///x", "http://a:", "http://a:0",
        "http://a:65536",
        "http://a:+1", "http://a:99999999999999999999", "http://a b", "http://u@a", "http://a?x", "http://a#x",
        "http://[]",
        "http://é",
    ]) func otherTextsAreNone(_ text: String) { #expect(ServerURL(text) == nil) }
}
