import TestSupport
import Testing
import Wire

/// Strings and object keys compared by bytes.
@Suite struct ByteKeyTests {
    @Test func canonicallyEquivalentStringsAreDifferentKeys() {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        #expect(composed == decomposed)
        #expect(ByteKey(composed) != ByteKey(decomposed))
        #expect(Set([ByteKey(composed), ByteKey(decomposed), ByteKey("\u{E9}")]).count == 2)
        #expect(JSONValue.text(composed) != .text(decomposed))
        let object = JSONText.parse(Array("{\"\(composed)\":1,\"\(decomposed)\":2}".utf8))?.object
        #expect(object?.count == 2)
        #expect(object?[composed] == 1 && object?[decomposed] == 2)
    }

    @Test func orderAndEqualityAreThoseOfTheBytes() {
        let texts = ["", "a", "ab", "abc", "b", "Z", "\u{0}", "a\u{0}", "é", "e\u{301}", "zz", "\u{FFFD}", "😀"]
        let long = String(repeating: "n", count: 40)
        for left in texts + texts.map({ long + $0 }) {
            for right in texts + texts.map({ long + $0 }) {
                let (first, second) = (Array(left.utf8), Array(right.utf8))
                #expect((ByteKey(left) < ByteKey(right)) == first.lexicographicallyPrecedes(second))
                #expect(left.hasSameBytes(as: right) == (first == second))
                #expect((ByteKey(left) == ByteKey(right)) == (first == second))
            }
        }
    }

    @Test func objectsAreIteratedInByteOrder() {
        let object = JSONText.parse(Array(#"{"b":1,"":2,"é":3,"a":4,"Z":5}"#.utf8))?.object
        #expect(object?.keys == ["", "Z", "a", "b", "é"])
        #expect(object.map(JSONValue.object)?.json == #"{"":2,"Z":5,"a":4,"b":1,"é":3}"#)
    }

    @Test func membersKeepTheirSourceOrder() {
        let object = JSONText.parse(Array(#"{"b":1,"":2,"a":3,"b":4,"Z":5}"#.utf8))?.object
        #expect(object?.membersInSourceOrder.map(\.key) == ["b", "", "a", "Z"])
        #expect(object?.membersInSourceOrder.map(\.value) == [4, 2, 3, 5])
        #expect(object == ["Z": 5, "a": 3, "b": 4, "": 2])
        #expect(object?.hashValue == (["Z": 5, "a": 3, "b": 4, "": 2] as JSONObject).hashValue)
    }

    @Test(arguments: [
        ("secret", "secret", true), ("", "", true), ("secres", "secret", false), ("Secret", "secret", false),
        ("secre", "secret", false), ("secretsecret", "secret", false), ("", "secret", false), ("secret", "", false),
        ("\u{0}", "", false), ("\u{E9}", "e\u{301}", false),
    ]) func aSecretMatchesOnlyTheSameBytes(text: String, secret: String, matches: Bool) {
        #expect(text.matchesSecret(secret) == matches)
    }

    @Test func theFirstValueIsThatOfTheFirstMatchingNameInByteOrder() {
        let object: JSONObject = ["name": 1, "Name": 2, "NAMED": 3, "nAME": 4]
        #expect(object.firstValue { $0.lowercased() == "name" } == 2)
        #expect(object.firstValue { $0 == "other" } == nil)
    }

    /// Comparison by Unicode's canonical equivalence would take minutes for each pair.
    @Test func keysOfCombiningMarksTakeLinearTime() throws {
        let body = Array("{\"\(CombiningMarks.long)\":1,\"\(CombiningMarks.long)x\":\"\(CombiningMarks.long)\"}".utf8)
        let time = try ContinuousClock().measure {
            let object = try #require(JSONText.parse(body)?.object)
            #expect(object.count == 2)
            #expect(object[CombiningMarks.of(bytes: 479_996)] == nil)
            #expect(object[CombiningMarks.long + "x"] == .text(CombiningMarks.long))
            #expect(object[CombiningMarks.long + "x"] != .text(CombiningMarks.of(bytes: 479_996) + "abcd"))
        }
        #expect(time < .seconds(20))
    }
}
