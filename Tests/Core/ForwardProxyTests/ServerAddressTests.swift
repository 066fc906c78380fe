import ForwardProxy
import Testing

/// Addresses of servers as users give them.
@Suite struct ServerAddressTests {
    @Test(arguments: [
        ("127.0.0.1:8000", "127.0.0.1:8000"), ("8000", "127.0.0.1:8000"),
        (":8000", "127.0.0.1:8000"), ("http://localhost", "localhost:80"),
        ("http://localhost:8000", "localhost:8000"), ("HTTP://10.0.0.1:1/", "10.0.0.1:1"),
        ("http://[::1]:8000", "[::1]:8000"), ("http://[::1]", "[::1]:80"), ("https://a.test", "a.test:443"),
        ("HTTPS://a.test:8443/", "a.test:8443"), ("https://[::1]", "[::1]:443"),
    ]) func anAddressIsAHostWithAPortOrAURL(_ text: String, _ destination: String) throws {
        let address = try ServerAddress(text)
        #expect("\(address.destination)" == destination && address.isSecure == text.lowercased().hasPrefix("https:"))
    }

    @Test(arguments: [
        ("localhost", "'localhost': expected HOST:PORT, http://HOST:PORT or https://HOST"),
        ("", "'': expected HOST:PORT"),
        ("127.0.0.1:0", "expected HOST:PORT"), ("https://a:0", "no valid host and port"),
        ("https://a:1/api/", "give https://HOST:PORT only"), ("ftp://a", "the scheme 'ftp' is not supported"),
        ("http://a:1/api/", "the path '/api/' at column 11 is not supported"),
        ("http://a?x=1", "the query '?x=1' at column 9 is not supported"),
        ("http://a#x", "the fragment '#x' at column 9 is not supported"), ("http://", "no valid host and port"),
        ("http://:80", "no valid host and port"), ("http://a:", "no valid host and port"),
        ("http://a:0", "no valid host and port"), ("http://a:65536", "no valid host and port"),
        ("http://[::1", "no valid host and port"), ("http://::1", "no valid host and port"),
        ("http://a b", "no valid host and port"), ("http://a:1/\u{1B}[2J", "the path '/ [2J' at column 11"),
        ("http://ä.test", "'http://ä.test': no valid host and port"), ("a b:1", "expected HOST:PORT"),
    ]) func anotherTextIsRefusedWithItsReason(_ text: String, _ reason: String) {
        let error = #expect(throws: ServerAddress.ParseError.self) { try ServerAddress(text) }
        #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
    }

    @Test(arguments: ["http://ada:secret@a:1", "https://ada:secret@a", "ada:secret@a:1"])
    func aPasswordInAnAddressIsNotPrinted(_ text: String) {
        let error = #expect(throws: ServerAddress.ParseError.self) { try ServerAddress(text) }
        #expect(error?.description.contains("secret") == false)
    }
}
