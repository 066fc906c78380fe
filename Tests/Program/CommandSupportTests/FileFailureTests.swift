import CommandSupport
import Foundation
import Testing

@Suite struct FileFailureTests {
    private static func reason(_ body: () throws -> Void, writing path: String? = nil) -> String? {
        do {
            try body()
            return nil
        } catch {
            return path.map { FileFailure.reason(error, writing: $0) } ?? FileFailure.reason(error)
        }
    }

    @Test func aMissingFolderIsNamed() {
        let path = "/missing folder/out.jsonl"
        let expected = "the folder /missing folder does not exist; create it first"
        #expect(Self.reason({ try Data().write(to: URL(filePath: path)) }, writing: path) == expected)
        #expect(
            Self.reason({ try Data("x".utf8).write(to: URL(filePath: path), options: .atomic) }, writing: path)
                == expected)
    }

    @Test func anObstacleIsKnownBefore() {
        #expect(
            FileFailure.obstacle(toWriting: "/missing/out.jsonl")
                == "the folder /missing does not exist; create it first")
        #expect(FileFailure.obstacle(toWriting: "/dev/null/out.jsonl") == "/dev/null is not a folder")
        #expect(FileFailure.obstacle(toWriting: "/tmp/out.jsonl") == nil)
        #expect(FileFailure.obstacle(toWriting: "out.jsonl") == nil)
    }

    @Test func aMissingFileIsNotRead() {
        #expect(Self.reason({ _ = try Data(contentsOf: URL(filePath: "/missing/in.jsonl")) }) == "it does not exist")
        #expect(
            Self.reason({ _ = try FileManager.default.attributesOfItem(atPath: "/missing/in.jsonl") })
                == "it does not exist")
    }

    @Test func aFolderIsNoFile() {
        #expect(Self.reason({ try Data().write(to: URL(filePath: "/")) }, writing: "/") == "is a directory")
    }

    @Test(arguments: [
        (ENOSPC, "no space left on device"), (EROFS, "read-only file system"), (ENOENT, "it does not exist"),
    ])
    func anErrorOfTheSystemHasItsText(number: Int32, text: String) {
        let error = NSError(domain: NSPOSIXErrorDomain, code: Int(number))
        #expect(FileFailure.reason(error) == text)
        let wrapped = NSError(domain: "other", code: 1, userInfo: [NSUnderlyingErrorKey: error])
        #expect(FileFailure.reason(wrapped) == text)
    }
}
