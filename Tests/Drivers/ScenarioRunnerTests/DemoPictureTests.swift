import Foundation
import TestSupport
import Testing

@testable import ScenarioRunner

/// The moving picture of the demonstration.
@Suite struct DemoPictureTests {
    @Test func thePictureOfTheDocumentationIsThatOfTheProgram() throws {
        let file = Repository.root.appending(path: "docs/images/demo.svg")
        let picture = try Demo().picture()
        if TestSettings.writesDocs { return try Data(picture.utf8).write(to: file) }
        #expect(
            try String(contentsOf: file, encoding: .utf8) == picture,
            "run SLOWLANE_WRITE_DOCS=1 scripts/test --filter DemoPictureTests")
        #expect(try Demo().picture() == picture, "a second run has the same picture")
        #expect(picture.utf8.count < 400_000)
    }

    @Test func theStepsHaveTheirValuesInOrder() throws {
        let picture = try Demo().picture()
        var rest = picture[...]
        for step in DemoPicture.steps {
            let range = try #require(rest.range(of: ">\(step.line)</text>"), "\(step.name)")
            rest = rest[range.upperBound...]
        }
        for value in [
            ">save Trip<", ">get Trip<", ">tunnel: no network<", ">slow 2G (EDGE)<", ">\u{2191} waiting<",
            ">409 conflict<",
            ">phone: 2 l, oat<", ">tablet: 3 l<", ">Ada has to decide<", ">3 l, oat<", ">response lost<",
            ">two, at the window<",
            ">revision 3<",
        ] { #expect(picture.contains(value), "\(value)") }
        for word in ["icon", "n1", "I1", "PUT", "undefined", ">none<"] {
            #expect(!picture.contains(word), "a word of the program: \(word)")
        }
    }
}
