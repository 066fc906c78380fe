import HTTPTypes
import TestSupport
import Testing

@testable import Wire

@Suite struct HTTPSyntaxTests {
    /// The search of eight bytes at a time finds what a search of single bytes finds, from every index.
    @Test(arguments: 0..<50 as Range<UInt64>) func theFirstSpecialByteIsFound(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let special: [UInt8] = [0x00, 0x09, 0x0A, 0x0D, 0x1F, 0x7F, 0x80, 0x9F, 0xA0, 0xFF]
        let bytes = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
            Int.random(in: 0..<6, using: &random) == 0
                ? special.randomElement(using: &random)! : UInt8.random(in: 0x20...0x7E, using: &random)
        }
        for start in 0...bytes.count {
            let expected = bytes[start...].firstIndex { !(0x20...0x7E).contains($0) } ?? bytes.count
            #expect(bytes.withUnsafeBytes { HTTPSyntax.firstSpecial(in: $0, from: start) } == expected)
        }
    }

    @Test func theValueOfAFieldIsThatOfTheSubscript() throws {
        let fields = try HTTPFields(checking: [("Accept", "a"), ("ETag", "\"1\""), ("accept", "b"), ("Location", "")])
        for name in [HTTPField.Name.accept, .eTag, .location, .date] { #expect(fields.value(of: name) == fields[name]) }
        #expect(fields.value(of: .accept) == "a, b" && fields.value(of: .date) == nil)
    }

    @Test func theCaseOfLettersOfASCIIIsIgnored() {
        #expect("Content-TYPE".hasSameBytes(ignoringCase: "content-type"))
        #expect(!"content-typ".hasSameBytes(ignoringCase: "content-type"))
        // The Kelvin sign is not K.
        #expect(!"\u{212A}".hasSameBytes(ignoringCase: "k") && !"é".hasSameBytes(ignoringCase: "É"))
    }
}
