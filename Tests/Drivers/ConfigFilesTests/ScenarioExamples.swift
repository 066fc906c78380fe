import Foundation

/// The scenario files of the tests.
enum ScenarioExamples {
    static let names = [
        "commuter-30-minutes", "create-retried-after-lost-response", "edit-conflict-after-subway", "every-key",
    ]

    static var folder: URL {
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Examples")
    }

    static func text(_ name: String) throws -> String {
        try String(contentsOf: folder.appending(path: "\(name).yaml"), encoding: .utf8)
    }
}
