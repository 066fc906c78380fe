import JSON
import TestSupport
import Testing

@Suite struct ByteKeyTests {
    @Test func textsThatOnlyLookTheSameAreTwoKeys() {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        #expect(composed == decomposed)
        #expect(ByteKey(composed) != ByteKey(decomposed))
        #expect(Set([ByteKey(composed), ByteKey(decomposed), ByteKey("\u{E9}")]).count == 2)
        #expect(JSONValue.text(composed) != .text(decomposed))
        let object = JSONText.parse(Array("{\"\(composed)\":1,\"\(decomposed)\":2}".utf8))?.object
        #expect(object?.count == 2)
        #expect(object?[composed] == 1 && object?[decomposed] == 2)
    }

    @Test func objectsAreIteratedInTheOrderOfTheirBytes() {
        let object = JSONText.parse(Array(#"{"b":1,"":2,"é":3,"a":4,"Z":5}"#.utf8))?.object
        #expect(object?.keys == ["", "Z", "a", "b", "é"])
        #expect(object.map(JSONValue.object)?.json == #"{"":2,"Z":5,"a":4,"b":1,"é":3}"#)
    }

    @Test func theFirstValueIsThatOfTheLeastNameThatMeetsTheCondition() {
        let object: JSONObject = ["name": 1, "Name": 2, "NAMED": 3, "nAME": 4]
        #expect(object.firstValue { $0.lowercased() == "name" } == 2)
        #expect(object.firstValue { $0 == "other" } == nil)
    }

    /// By Unicode's rules each comparison of the two takes minutes.
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
