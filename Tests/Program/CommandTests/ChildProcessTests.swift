import TestSupport
import Testing

/// Child processes inherit no sockets of the tests: an inherited connection would never be closed.
@Suite(.tags(.commands)) struct ChildProcessTests {
    @Test(.enabled(if: Program.seesDescriptors)) func aChildProcessInheritsNoSocketsWhileOthersAreOpened() async throws
    {
        let isFinished = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await blocking { () throws -> Void in
                    while !isFinished.isSet { _ = try (0..<20).map { _ in try TestSocket.listen() } }
                }
            }
            group.addTask {
                defer { isFinished.set() }
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
