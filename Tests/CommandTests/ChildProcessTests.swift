import TestSupport
import Testing

/// Programs that tests start have nothing of the tests' sockets: one that kept a connection open would hide its end.
@Suite struct ChildProcessTests {
    @Test(.enabled(if: Program.seesDescriptors)) func aProgramInheritsNoSocketHoweverManyAreOpened() async throws {
        let isOver = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await blocking { () throws -> Void in
                    while !isOver.isSet { _ = try (0..<20).map { _ in try TestSocket.listen() } }
                }
            }
            group.addTask {
                defer { isOver.set() }
                try await blocking { () throws -> Void in
                    for _ in 0..<50 {
                        let (status, open, _) = try runProgram("ls", ["-l", "/proc/self/fd"])
                        #expect(status == 0)
                        #expect(open.contains("pipe:"))
                        #expect(!open.contains("socket:"), "\(open)")
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private enum Program {
        #if os(Linux)
            static let seesDescriptors = true
        #else
            static let seesDescriptors = false
        #endif
    }
}
