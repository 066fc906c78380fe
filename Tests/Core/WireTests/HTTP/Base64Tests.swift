import Testing
import Wire

@Suite struct Base64Tests {
    /// The test vectors of RFC 4648, section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func bytesAreEncoded(_ text: String, _ encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        #expect(Base64.decode(encoded.utf8) == Array(text.utf8))
        #expect(Base64.decode(encoded.utf8.prefix { $0 != UInt8(ascii: "=") }) == Array(text.utf8))
    }

    @Test(arguments: ["Z", "Zm9vY", "Zm 9", "Zm9v-w", "=Zm9"]) func otherTextIsNotDecoded(_ text: String) {
        #expect(Base64.decode(text.utf8) == nil)
    }
}
